"""What is sent again: the same batch a few times, then its halves, until a single path stands accused."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.queue import Batch
from ckcv_ray.engine.ray_backend import MAX_ATTEMPTS, halves, replacements

paths = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=5, unique=True)
units = st.lists(
    st.builds(Unit, st.just(Stage.SELECT), st.integers(0, 6), st.integers(0, 9), paths.map(tuple)),
    min_size=1,
    max_size=9,
).map(tuple)


def parts(batch: tuple[Unit, ...]) -> list[tuple[int, int, tuple[int, int]]]:
    return [(unit.size, unit.split, path) for unit in batch for path in unit.paths]


@given(units)
def test_halves_hold_all_the_paths_and_neither_is_empty(batch):
    both = halves(batch)
    assert [path for half in both for path in parts(half)] == (parts(batch) if len(parts(batch)) > 1 else [])
    assert all(parts(half) for half in both)


@given(units, st.data())
def test_one_poisoned_path_is_isolated_and_all_else_gets_through(batch, data):
    """Whatever holds the poisoned path is lost every time."""
    poison = data.draw(st.sampled_from(parts(batch)))
    queue, done, failed, sent = deque([Batch(batch)]), [], [], 0
    while queue:
        one, sent = queue.popleft(), sent + 1
        if poison not in parts(one.units):
            done += parts(one.units)
        elif others := replacements(one):
            queue.extend(others)
        else:
            failed += parts(one.units)
    assert set(failed) == {poison}
    assert sorted(done + failed) == sorted(parts(batch))
    assert sent <= 2 * MAX_ATTEMPTS * len(parts(batch))
