"""Signatures of a run: appended next to the manifest, and compared with it ever after."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from forgery import reseal, run_in

from ckcv_ray import InputError, StoreError, verify
from ckcv_ray.runs.sign import sign
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.signatures import MOST_SIGNATURES, SIGNATURES, read_signatures

SIGNED = {"author": "Jane Doe", "date": "2026-11-25T13:00:00+00:00", "manifest": "0" * 64}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def write(run: Path, *signatures: object) -> None:
    (run / SIGNATURES).write_text(json.dumps({"signatures": signatures}))


def test_signing_changes_no_file_of_the_run(run: Path) -> None:
    before = contents(run)
    first, second = sign(run, "Jane Doe"), sign(run, " 山田 太郎 ")
    after = contents(run)
    assert after.pop(SIGNATURES)
    assert after == before
    assert read_signatures(RunFolder(run).files) == (first, second)
    assert (first.author, second.author) == ("Jane Doe", "山田 太郎")
    assert first.manifest == second.manifest == RunFolder(run).sha256("manifest.json")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(first.date)) < timedelta(minutes=5)


def test_verify_says_who_signed(run: Path) -> None:
    unsigned = verify(run)
    assert not any("signed" in line for line in (*unsigned.recomputed, *unsigned.trusted))
    date = sign(run, "Jane Doe").date[:10]
    found = verify(run)
    assert found.ok
    assert f"signed by 'Jane Doe' on {date}: the manifest is the one that was signed" in found.recomputed
    assert f"names and dates in {SIGNATURES}, which anybody who can write there can write" in found.trusted


def test_verify_says_that_the_manifest_has_changed_since(run: Path) -> None:
    sign(run, "Jane Doe")
    content = json.loads((run / "execution.json").read_text())
    (run / "execution.json").write_text(json.dumps(content | {"source": "elsewhere.csv"}))
    reseal(run)
    found = verify(run)
    assert found.ok  # what is not in figures may differ; the signature says that something does
    assert "the manifest has changed since" in found.verdict
    assert "the manifest has changed since" in found.notes[0]
    sign(run, "John Doe")
    assert "signed by 'Jane Doe'" in verify(run).verdict
    assert "signed by 'John Doe'" in " ".join(verify(run).recomputed)


def test_a_run_that_is_taken_up_again_keeps_its_signatures(run: Path) -> None:
    signed = sign(run, "Jane Doe")
    (run / "certificate.json").unlink()
    run_in(run)
    assert read_signatures(RunFolder(run).files) == (signed,)
    assert verify(run).ok


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "\x1b[2J", "x" * 201])
def test_a_name_that_cannot_be_printed_in_a_line_is_refused(run: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"sign=.*expected the name of who signs, in one line of at most"):
        sign(run, name)
    assert not (run / SIGNATURES).exists()


def test_what_is_not_finished_or_not_intact_is_not_signed(run: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no run"):
        sign(tmp_path / "new", "Jane Doe")
    (run / "candidates.parquet").write_bytes(b"")
    with pytest.raises(StoreError, match=r"candidates\.parquet differs.*is not signed: ckcv verify lists"):
        sign(run, "Jane Doe")
    (run / "manifest.json").unlink()
    with pytest.raises(StoreError, match="no finished run: there is nothing to sign yet"):
        sign(run, "Jane Doe")
    assert not (run / SIGNATURES).exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"author": ""}, "expected the name of who signs"),
        ({"author": "\x1b[2J"}, "expected the name of who signs"),
        ({"date": "yesterday"}, "Invalid isoformat string"),
        ({"date": "2026-11-25"}, "has no time zone"),
        ({"manifest": "0" * 63}, "is not a SHA-256"),
        ({"manifest": "G" * 64}, "is not a SHA-256"),
        ({"key": "more"}, "key"),
        ({"author": 7}, "valid string"),
    ],
)
def test_a_damaged_file_is_a_difference_and_nothing_is_appended_to_it(
    run: Path, change: dict[str, object], reason: str
) -> None:
    write(run, SIGNED | change)
    content = (run / SIGNATURES).read_bytes()
    (difference,) = verify(run).differences
    assert f"{SIGNATURES} is damaged" in difference
    assert reason in difference
    with pytest.raises(StoreError, match="is damaged"):
        sign(run, "Jane Doe")
    assert (run / SIGNATURES).read_bytes() == content


def test_what_is_no_file_of_signatures_is_refused(run: Path) -> None:
    write(run, *[SIGNED] * (MOST_SIGNATURES + 1))
    assert f"{SIGNATURES} is damaged" in " ".join(verify(run).differences)
    (run / SIGNATURES).unlink()
    os.symlink("/dev/zero", run / SIGNATURES)
    assert f"{SIGNATURES} is damaged" in " ".join(verify(run).differences)


def test_a_temporary_file_of_a_killed_process_is_no_file_of_the_run(run: Path) -> None:
    left = run / f".{SIGNATURES}-0123456789abcdef.tmp"
    left.write_text("{")
    assert verify(run).ok
    sign(run, "Jane Doe")
    assert not left.exists()
