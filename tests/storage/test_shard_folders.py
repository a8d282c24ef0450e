"""The plan of a run's shards, and the folder of one, which has one writer at a time."""

import json

import pytest

from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.shards import ShardFolder, ShardPlan, read_plan, write_plan

PLAN = ShardPlan("0123456789ab", (((0, 0, 4),), ((0, 4, 6), (1, 0, 2)), ((1, 2, 3),)))


def test_a_plan_is_read_as_it_was_written(tmp_path):
    write_plan(LocalFiles(tmp_path), PLAN)
    assert read_plan(LocalFiles(tmp_path), "0123456789ab") == PLAN
    assert PLAN.count == 3
    assert PLAN.list_stops() == [6, 3]


def test_without_a_file_there_is_no_plan(tmp_path):
    assert read_plan(LocalFiles(tmp_path), "0123456789ab") is None


def test_the_plan_of_another_run_is_refused(tmp_path):
    write_plan(LocalFiles(tmp_path), PLAN)
    with pytest.raises(StoreError, match=r"divides run 0123456789ab, and the folder holds run ba9876543210"):
        read_plan(LocalFiles(tmp_path), "ba9876543210")


@pytest.mark.parametrize(
    ("shards", "what"),
    [
        ([], "a shard without work"),
        ([[[0, 0, 4]], []], "a shard without work"),
        ([[[0, 0, 4]], [[0, 5, 6]]], "from 5 to 6 does not follow"),
        ([[[0, 0, 4]], [[0, 3, 6]]], "from 3 to 6 does not follow"),
        ([[[0, 0, 4]], [[2, 0, 6]]], "from 0 to 6 does not follow"),
        ([[[0, 0, 4]], [[0, 4, 4]]], "from 4 to 4 does not follow"),
        ([[[1, 0, 4]]], "from 0 to 4 does not follow"),
        ([[[0, 1, 4]]], "from 1 to 4 does not follow"),
        ([[[0, 0, 4]]] * 10_001, "more than 10,000"),
        ([[[0, 0]]], "is damaged"),
        ([[[0, 0, "4"]]], "is damaged"),
        ("all", "is damaged"),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path, shards, what):
    (tmp_path / "shards.json").write_text(json.dumps({"run_id": "0123456789ab", "shards": shards}))
    with pytest.raises(StoreError, match=what):
        read_plan(LocalFiles(tmp_path), "0123456789ab")


def test_a_shard_has_one_writer(tmp_path):
    first, second = ShardFolder(LocalFiles(tmp_path), 7), ShardFolder(LocalFiles(tmp_path), 7)
    first.acquire()
    assert second.busy
    with pytest.raises(StoreError, match=r"shard 7 of .* is computed by another process: wait for it"):
        second.acquire()
    other = ShardFolder(LocalFiles(tmp_path), 8)
    other.acquire()
    other.release()
    first.release()
    assert not second.busy
    second.acquire()
    second.release()
    assert [file.name for file in (tmp_path / "log").rglob("*") if file.is_file()] == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    left = tmp_path / "log" / "shard-00007"
    left.mkdir(parents=True)
    for name in (".lock", ".part-000000.parquet-0123.tmp", "part-000000.parquet"):
        (left / name).write_text("half")
    shard = ShardFolder(LocalFiles(tmp_path), 7)
    assert not shard.busy
    shard.remove_left_lock()
    assert [file.name for file in left.iterdir()] == ["part-000000.parquet"]
    shard.remove_left_lock()


def test_what_a_living_process_has_is_left_alone(tmp_path):
    first = ShardFolder(LocalFiles(tmp_path), 7)
    first.acquire()
    ShardFolder(LocalFiles(tmp_path), 7).remove_left_lock()
    assert first.busy
    first.release()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "log").write_text("no folder")
    with pytest.raises(InputError, match="cannot write to"):
        ShardFolder(LocalFiles(tmp_path), 7).acquire()


def test_a_lock_that_is_no_file_is_refused(tmp_path):
    (tmp_path / "log" / "shard-00007" / ".lock").mkdir(parents=True)
    with pytest.raises(StoreError, match="is not a regular file"):
        ShardFolder(LocalFiles(tmp_path), 7).acquire()
