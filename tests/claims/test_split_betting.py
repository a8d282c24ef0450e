"""Claims of nested and occam by betting on the units of splits: losses, order, forgeries."""

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from claimed import run
from forgery import column, rewrite, rewrite_json

from ckcv_ray import Result, Study, Task, load_run, verify
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.claim import Claim
from ckcv_ray.claims.proofs import compute_level
from ckcv_ray.core.bounds.betting import bound_mean_by_betting, find_betting_prefix
from ckcv_ray.core.bounds.losses import ONE, best_loss_prefix, bound_loss_claim, choose_split_method
from ckcv_ray.core.draws import Draws, draw_first, order_within
from ckcv_ray.records import judged
from ckcv_ray.records.judged import JUDGED_ROWS
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.storage.folder import CERTIFICATE
from ckcv_ray.study import Execution
from ckcv_ray.tables.repeats import find_repeats

N = 150
RNG = np.random.default_rng(2)
X = RNG.normal(size=(2 * N, 2))
GROUPS = RNG.permutation(np.repeat(np.arange(N), 2))
Y = (X[:, 0] + RNG.normal(size=2 * N) / 2 > 0).astype(int)
VISITS = Task.of(X, Y, groups=GROUPS)
PRICES = Task.of(X, X @ [1.0, 2.0] + RNG.normal(size=2 * N), numbers=True)
TREE = Study.paper(learner="tree", param=("max_depth=1,2", "min_samples_leaf=5"), k=(3,), n_splits=3)
RIDGE = Study.of(learner="ridge", alpha=(0.1, 10.0), clip=4.0, k=(3,), n_splits=3)
NESTED = {"certify": "nested", "outer_splits": 3}
KINDS = {
    "groups": (TREE, VISITS),
    "groups, nested": (TREE.replace(**NESTED), VISITS),
    "groups, held out": (TREE.replace(certify="holdout"), VISITS),
    "groups, in turn": (TREE.replace(resampling="rotation"), VISITS),
    "numbers": (RIDGE, PRICES),
    "numbers, nested": (RIDGE.replace(**NESTED), PRICES),
    "numbers, held out": (RIDGE.replace(certify="holdout"), PRICES),
}
FEW = np.repeat(np.arange(30), 10)  # groups of ten rows, too few of them for betting
Made = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a run once."""
    root = tmp_path_factory.mktemp("made")

    def make(name: str) -> Path:
        out = root / name.replace(", ", "_")
        if not out.exists():
            run(*KINDS[name], out)
        return out

    return make


def measure(result: Result, name: str, split: int) -> np.ndarray:
    """The losses of a split's units in the order drawn, one by one from the judged rows."""
    table = result.finished.judged.to_pandas()
    rows = table[(table.classifier == name) & (table.split == split)]
    units = sorted(set(rows.unit))
    losses = [np.ceil(rows.loss[rows.unit == unit].mean() * ONE) / ONE for unit in units]
    places = [set(rows.order[rows.unit == unit]) for unit in units]
    order = order_within(len(units), result.problem.draws, split).tolist()
    assert places == [{order.index(i)} for i in range(len(units))]
    return np.array(losses)[order]


def select(result: Result, certification: str) -> list[Claim]:
    return [c for c in result.certificate.claims if c["certification"] == certification]


@pytest.mark.parametrize("name", KINDS)
def test_a_claim_is_the_bound_by_betting_on_the_units_of_the_splits(name: str, made: Made) -> None:
    result = load_run(made(name))
    problem = result.problem
    expected = [("occam", "random", problem, compute_level(problem, result.k), len(result.ensemble.members))]
    if "nested" in name:
        expected.append(("nested", "nested", problem.outer, 0.05, 3))
    for certification, classifier, of, level, n_splits in expected:
        size = of.find_size(result.k) if certification == "occam" else of.sizes[0]
        assert choose_split_method(size.n_select, level) == "betting"
        units = np.array([measure(result, classifier, i) for i in of.order(size)])
        assert units.shape == (n_splits, size.n_select)
        best, claims = find_betting_prefix(units, level), select(result, certification)
        assert claims[0]["bound"] == pytest.approx(bound_mean_by_betting(units, level), rel=1e-9)
        assert claims[-1]["bound"] == pytest.approx(best.bound, rel=1e-9)
        assert (len(claims[-1]["splits"]) or n_splits) == best.length
        totals = [int(total) for total in np.round(units.sum(axis=1) * ONE)]
        assert claims[-1]["bound"] < best_loss_prefix(totals, size.n_select, level).bound
        for claim in claims:
            unit = "rows" if "numbers" in name else "groups"
            assert f"betting on the {unit} in the order drawn, " in claim["statement"]


@pytest.mark.parametrize("name", ["groups, held out", "numbers, held out"])
def test_rows_of_f_star_have_their_numbers_in_the_whole_table(name: str, made: Made) -> None:
    result = load_run(made(name))
    task, table = KINDS[name][1], result.finished.judged.to_pandas()
    rows = table[table.classifier == "random"]
    np.testing.assert_array_equal(rows.label, task.y[rows.row])
    np.testing.assert_array_equal(rows.unit, result.problem.all_rows.groups[rows.row])
    assert not set(rows.row) & set(result.problem.held.tolist())


@pytest.mark.parametrize("name", KINDS)
def test_a_folder_verifies_and_is_read_again(name: str, made: Made) -> None:
    found = verify(made(name))
    assert found.ok, found
    certificate = load_run(made(name)).certificate
    assert Certificate.from_json(json.loads(json.dumps(certificate.to_json()))) == certificate


def test_counts_judge_no_row_of_f_star() -> None:
    result = run(TREE, Task.of(X, Y))
    assert result.finished.judged is None


# What decides, and what does not


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_m_and_delta_alone_decide_whatever_the_losses_are(share: float) -> None:
    """Few groups at a small delta are bounded by totals even if betting would be closer on these losses."""
    y = np.where(np.random.default_rng(4).random(2 * N) < share, 1 - Y, Y)
    task = Task.of(X, y, groups=FEW)
    claims = run(TREE.replace(delta=1e-3), task).certificate.claims
    assert all("averaging-safe" in claim["statement"] or "Catoni" in claim["statement"] for claim in claims)
    task = Task.of(X, y, groups=GROUPS)
    assert all("betting" in claim["statement"] for claim in run(TREE, task).certificate.claims)


def test_units_are_drawn_by_the_seed_of_a_study_for_each_split_by_itself() -> None:
    drawn = {tuple(order_within(20, Draws(seed), number)) for seed in range(10) for number in range(10)}
    assert len(drawn) == 100
    assert all(sorted(order) == list(range(20)) for order in drawn)
    first = [order_within(5, Draws(seed), 3)[0] for seed in range(2000)]
    assert np.all(np.abs(np.bincount(first) - 400) < 5 * np.sqrt(400))


def test_the_order_of_the_rows_of_a_group_has_no_part_in_its_claims() -> None:
    """Each group's rows change places: groups have the same losses and places in the order."""
    places = np.argsort(GROUPS, kind="stable")
    changed = np.empty_like(places)
    changed[places] = places.reshape(N, 2)[:, ::-1].ravel()
    study = TREE.replace(learner="constant", param=(), **NESTED)
    claims = [
        run(study, Task.of(X[rows], Y[rows], groups=GROUPS)).certificate.claims
        for rows in (np.arange(2 * N), changed)
    ]
    assert [c["bound"] for c in claims[0]] == [c["bound"] for c in claims[1]]
    assert [c["splits"] for c in claims[0]] == [c["splits"] for c in claims[1]]


def test_groups_that_repeat_are_counted_once_in_a_bound_that_totals_decide() -> None:
    again = [*range(2 * N), *range(20)]
    groups = np.concatenate([GROUPS, N + np.arange(20) // 2])
    result = run(TREE.replace(**NESTED), Task.of(X[again], Y[again], groups=groups))
    claims = result.certificate.claims
    assert "betting" in claims.first["statement"]
    m = result.problem.outer.sizes[0].n_select
    left = m - find_repeats(result.problem.all_rows).copies
    losses = [min(member.loss, left * ONE) for member in result.nested.members]
    assert 0 < left < m
    assert claims.bound_without_copies == bound_loss_claim(losses, left, 0.05) > claims.first["bound"]


def test_u_lowers_the_claim_about_a_single_split_alone() -> None:
    study = TREE.replace(certify="nested", outer_splits=1)
    plain, closer = run(study, VISITS), run(study.replace(first_uniform=True), VISITS)
    u = draw_first(plain.problem.draws)
    (before, *_), (after, *_) = select(plain, "nested"), select(closer, "nested")
    units = np.array([measure(closer, "nested", 0)])
    assert after["bound"] == pytest.approx(bound_mean_by_betting(units, 0.05, u), rel=1e-9)
    assert after["bound"] < before["bound"]
    assert f"U = {u:.3f} drawn for the first split alone" in after["statement"]
    every = select(closer, "occam")[0]
    assert every["bound"] == select(plain, "occam")[0]["bound"]


def test_more_rows_than_a_file_may_have_are_bet_on_and_not_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(judged, "MOST_TABLE_ROWS", 120)  # 100 rows are held out, 3 x 68 of splits
    result = run(TREE, VISITS, tmp_path / "run")
    assert "betting" in result.certificate.claims.first["statement"]
    assert not (tmp_path / "run" / JUDGED_ROWS).exists()
    result = run(TREE.replace(certify="holdout"), VISITS, tmp_path / "held")
    assert "betting" in select(result, "occam")[0]["statement"]
    assert set(load_run(tmp_path / "held").finished.judged["classifier"].to_pylist()) == {"refit"}
    assert verify(tmp_path / "run").ok
    assert verify(tmp_path / "held").ok


def test_a_run_that_was_stopped_ends_with_the_same_files(made: Made, tmp_path: Path) -> None:
    study, task = KINDS["groups, nested"]
    left = iter(range(3))
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(study, task, out, lambda: next(left, None) is None)
    run_job(Job(study, task, out), Execution("serial"))
    for name in (CERTIFICATE, JUDGED_ROWS):
        assert (out / name).read_bytes() == (made("groups, nested") / name).read_bytes()


# Forgeries


@pytest.fixture
def folder(made: Made, tmp_path: Path) -> Path:
    """A copy of a nested run of groups, which may be changed."""
    return Path(shutil.copytree(made("groups, nested"), tmp_path / "run"))


@pytest.mark.parametrize(
    ("name", "at"),  # of an outer estimate set, and of one of F*
    [*product(["split", "row", "unit", "order", "label", "predicted", "loss"], [0, -1])],
)
def test_a_forged_cell_is_found(at: int, name: str, folder: Path) -> None:
    def change(values: list[Any]) -> list[Any]:
        values[at] = abs(1 - values[at])
        return values

    rewrite(folder, JUDGED_ROWS, column(name, change))
    assert any(f"{JUDGED_ROWS}: {name} of judged row" in found for found in verify(folder).differences)


def test_losses_in_another_order_are_found(folder: Path) -> None:
    """As of one who would like large losses to come early."""

    def sort(table: pa.Table) -> pa.Table:
        places = np.argsort(np.argsort(-table["loss"].to_numpy(), kind="stable"))
        return table.set_column(
            table.column_names.index("order"), "order", pa.array(places).cast(table["order"].type)
        )

    rewrite(folder, JUDGED_ROWS, sort)
    assert any("order of judged row" in found for found in verify(folder).differences)


def test_rows_of_f_star_that_are_left_out_are_found(folder: Path) -> None:
    rewrite(folder, JUDGED_ROWS, lambda table: table.slice(0, len(table) - 1))
    assert any("computed again there are" in found for found in verify(folder).differences)


def test_a_bound_that_is_lowered_is_found(folder: Path) -> None:
    def lower(values: dict[str, Any]) -> dict[str, Any]:
        for claim in (*values["claims"], values["proven"]):
            claim["bound"] *= 1 - 1e-6
        return values | {"bound_without_copies": values["proven"]["bound"]}

    rewrite_json(folder, CERTIFICATE, lower)
    assert any("bound is" in found for found in verify(folder).differences)
