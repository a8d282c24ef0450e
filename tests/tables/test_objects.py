"""Addresses of objects, and the client: what is refused, what is repeated, what is never shown."""

from io import BytesIO
from typing import Any
from unittest.mock import Mock

import pytest
from s3_server import S3Server
from stores import BUCKET, RUN, MemoryBucket, list_keys

from ckcv_ray.errors import InputError, UnreachableError
from ckcv_ray.tables import objects
from ckcv_ray.tables.named import read
from ckcv_ray.tables.objects import Address, Bucket, is_address, parse_address
from ckcv_ray.tables.read import Reading, read_file

obstore = pytest.importorskip("obstore")
SECRET = "swordfish"
REFUSED = {
    "hdfs://bucket/x": "out='hdfs://'...: the scheme is not known: choose from s3://, gs://, az://",
    f"s3://user:{SECRET}@bucket/x": "s3://...: the address has a user, a password or a token in it",
    f"s3://{SECRET}@bucket/x": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
    f"az://bucket/x?sig={SECRET}": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
PARTS = (f"[{SECRET}/x", "", "/x", "ab/x", "Bucket/x", "bucket/", "bucket/runs/../x", "bucket/runs//x")
PARTS += tuple(f"bucket/{key}" for key in ("./x", "a\nb", "a*", "a%20b", "x" * 701))
FORM = "s3://...: expected s3://bucket/runs/patients, a bucket of 3 to 63"
REFUSED |= {f"s3://{part}": FORM for part in PARTS}


@pytest.mark.parametrize("text", REFUSED)
def test_a_bad_address_is_refused_and_shows_no_secret(text: str) -> None:
    assert is_address(text)
    with pytest.raises(InputError) as refused:
        parse_address("out", text)
    assert REFUSED[text] in str(refused.value)
    assert SECRET not in str(refused.value)


def test_an_address_is_its_parts() -> None:
    address = parse_address("out", "gs://my.bucket-1/runs/x y/")
    assert address == Address("gs", "my.bucket-1", "runs/x y")
    assert str(address) == "gs://my.bucket-1/runs/x y"
    assert str(address.inside("log/a")) == "gs://my.bucket-1/runs/x y/log/a"
    assert not is_address("runs/x")


def test_an_object_has_a_time_folders_are_told_and_a_download_begins_again(memory: Any) -> None:
    """All else that a bucket does is in ``tests/storage/test_stores.py``."""
    bucket = MemoryBucket(parse_address("out", RUN), memory)
    bucket.put("log/b", b"12")
    assert bucket.find("log/b") == bucket.list("log")[0][1]
    with pytest.raises(FileNotFoundError):
        bucket.find("log")
    assert bucket.folders("") == {"log"}
    assert MemoryBucket(Address("s3", BUCKET, ""), memory).folders("") == {"runs"}
    file = BytesIO(b"longer than that")
    bucket.download("log/b", 9, file)
    assert file.getvalue() == b"12"
    with pytest.raises(ValueError, match="larger than 0 MiB"):
        bucket.download("log/b", 1, file)
    for _ in range(2):
        bucket.delete("log/b")
    assert list_keys(memory) == []


GENERIC = RuntimeError(
    f"Generic S3 error: Error performing PUT https://host/bucket?X-Amz-Signature={SECRET} in 3s - HTTP "
    f"error: cut off\n\nDebug source: {SECRET}"
)
CODED = RuntimeError(f"<Error><Code>AccessDenied</Code><AWSAccessKeyId>{SECRET}</AWSAccessKeyId></Error>")
DENIED = type("PermissionDeniedError", (Exception,), {})(SECRET)
LACKING = RuntimeError("Error performing PUT http://169.254.169.254/latest/api/token")


@pytest.mark.parametrize(
    ("error", "calls", "words"),
    [
        (GENERIC, 3, "HTTP error: cut off"),
        (CODED, 3, "the store answers AccessDenied"),
        (LACKING, 3, "the environment has no credentials for s3://: set AWS_ACCESS_KEY_ID"),
        (DENIED, 1, "the store refuses it: check the credentials"),
        (RuntimeError(""), 3, "RuntimeError"),
    ],
)
def test_what_is_cut_off_is_repeated_and_then_said(error: Exception, calls: int, words: str) -> None:
    bucket, request = Bucket(parse_address("out", RUN)), Mock(side_effect=error)
    with pytest.raises(UnreachableError) as raised:
        bucket._ask("write a", request)
    assert request.call_count == calls
    for text in (f"cannot write a in '{RUN}': ", words, "the same command goes on from there"):
        assert text in str(raised.value)
    assert SECRET not in str(raised.value)
    assert bucket._ask("write a", Mock(side_effect=[GENERIC, GENERIC, "answer"])) == "answer"


def test_a_bucket_that_is_not_there_is_said(s3: S3Server) -> None:
    bucket = Bucket(parse_address("out", "s3://nowhere/x"))
    for ask in (bucket.list, lambda: bucket.get("a", 1), lambda: bucket.create("a", b"")):
        with pytest.raises(InputError, match="there is no bucket 'nowhere': create it"):
            ask()


def test_a_full_disk_is_no_fault_of_the_store() -> None:
    with pytest.raises(OSError, match="full"):
        Bucket(parse_address("out", RUN))._ask("read a", Mock(side_effect=[OSError("full"), "answer"]))


def test_without_the_client_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'needs obstore, which is not installed: .* "\.\[objects\]"'):
        Bucket(parse_address("out", RUN)).list()


def test_a_table_is_read_from_a_store(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    obstore.put(memory, "tables/t 1.csv", b"a,y\n1,u\n2,v\n")
    place = f"s3://{BUCKET}/tables/t 1.csv"
    assert read(place).learn.to_pydict() == {"a": ["1", "2"], "y": ["u", "v"]}
    with pytest.raises(InputError, match=rf"there is no object 's3://{BUCKET}/no\.csv'"):
        read_file(f"s3://{BUCKET}/no.csv")
    with pytest.raises(InputError, match=r"sheet is for \.xlsx") as refused:
        read_file(place, Reading(sheet="a"))
    assert f"'{place}'" in str(refused.value)
    monkeypatch.setattr("ckcv_ray.tables.read.MAX_TABLE_BYTES", 4)
    with pytest.raises(InputError, match=rf"cannot read '{place}': it is larger than"):
        read_file(place)
