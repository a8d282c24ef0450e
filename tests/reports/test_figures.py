"""Charts, on a page and on axes of matplotlib: drawn inside their axes, and showing what is measured."""

import re
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from conftest import blobs
from matplotlib.figure import Figure

from ckcv_ray import InputError, Result, Study, evaluate, run
from ckcv_ray.errors import ceil_percent
from ckcv_ray.reports import figures
from ckcv_ray.reports.figures import Chart, Mark, Picture, Scale, Tiles, write_svg
from ckcv_ray.runs.judged import judge_rows

X = np.array([1.0, 2.0, 5.0, 100.0])
Drawn = tuple[Result, dict[str, Picture]]
NAMES = ("_hidden", "$x_1$", "<b>", "a" * 80)
EVERYTHING = Chart(
    Scale("<i>", log=True),
    Scale("$y$", 0.0, 1.0),
    [
        Mark(X, [0.1, np.nan, 0.3, 7.0], name="_line", width=1.0, dash=(2, 1)),
        *(Mark(X, 0.5, figures.RED, f"{shape} <b>", shape=shape) for shape in "os^Dx*"),
    ],
)
SQUARES = Chart(
    Scale("C", names=("1", "2", "3", "4")), Scale("gamma", names=NAMES, down=True),
    [Tiles(np.arange(4), np.ones(4), np.full(4, 0.9), np.array([3.0, 2.0, 1.0, 9.0]), "L_MS", 0.5)],
)  # fmt: skip


@pytest.mark.parametrize("chart", [EVERYTHING, SQUARES], ids=["marks", "squares"])
def test_a_chart_is_well_formed_inside_its_box_and_the_same_each_time(chart: Chart) -> None:
    svg = write_svg(chart, '"<label>"')
    assert svg == write_svg(chart, '"<label>"')
    root = ElementTree.fromstring(svg)
    assert (root.get("role"), root.get("aria-label")) == ("img", '"<label>"')
    for at, most in (("x", figures.WIDTH), ("cx", figures.WIDTH), ("y", chart.height), ("cy", chart.height)):
        places = [float(part.get(at, 0)) for part in root.iter()]
        assert min(places) >= 0
        assert max(places) <= most
    assert "nan" not in svg
    assert set(re.findall(r"(?:fill|stroke): (\w+)", svg)) == {"currentColor", "none"}
    assert figures.INK not in svg
    assert 'id="axes' not in svg  # of several pictures of a page no two parts have one name
    texts = [text.get("style") for text in root.iter("text")]
    assert texts
    assert all("fill: currentColor" in style for style in texts)
    assert "<style" not in svg


@pytest.fixture(scope="module")
def result() -> Drawn:
    rows = blobs(160, shift=2.0)
    study = Study.of(k=(3, 4, 20), n_splits=3, certify="holdout", C=(0.1, 1.0, 10.0), gamma=(0.01, 1.0))
    made = run(study, rows.X, rows.y)
    pictures = [figures.draw_landscape(made), figures.draw_folds(made)]
    pictures += figures.draw_performance(made, judge_rows(made))
    return made, {picture.title: picture for picture in pictures}


def test_every_figure_has_a_table_as_wide_as_its_heads_or_a_reason(result: Drawn) -> None:
    _, pictures = result
    assert len(pictures) == 7
    for picture in pictures.values():
        assert {len(row) for row in picture.rows} == ({len(picture.heads)} if picture.chart else set())
        assert picture.caption.startswith("There is none: ") == (picture.svg == "")
    assert [title for title, picture in pictures.items() if not picture.chart] == ["Calibration"]


def test_the_landscape_has_what_the_table_of_candidates_says_of_the_winners_k(result: Drawn) -> None:
    made, pictures = result
    picture = pictures[f"L_MS over C and gamma at k = {made.k}"]
    rows = [row for row in made.candidates.to_pylist() if row["k_first"] <= made.k <= row["k_last"]]
    tiles, *_, star = picture.chart.parts
    values = [row["lower_bound"] if row["l_ms"] is None else row["l_ms"] for row in rows]
    assert sorted(tiles.values) == sorted(100 * value for value in values)
    assert picture.heads == ("gamma \\ C", "0.1", "1", "10")
    (best,) = [row for row in rows if row["state"] == "winner"]
    x, y = picture.heads.index(f"{best['C']:g}"), [row[0] for row in picture.rows].index(f"{best['gamma']:g}")
    assert (star.x.tolist(), star.y.tolist()) == ([x - 1], [y])
    assert picture.rows[y][x] == ceil_percent(made.certificate.l_ms)


matplotlib.use("agg")
SMALL = {"k": (3, 4), "n_splits": 3, "certify": "holdout"}


@pytest.fixture(scope="module")
def linear() -> Result:
    """A run of logistic regression, which has one parameter and gives probabilities."""
    rows = blobs(160, shift=2.0)
    return run(Study.of(**SMALL, learner="linear", param={"C": (0.01, 0.1, 10.0)}), rows.X, rows.y)


def test_a_claim_is_the_range_that_it_proves_with_what_was_measured_in_it() -> None:
    rows, names = blobs(160, shift=2.0), ("error", "sensitivity", "specificity", "auc", "ppv:0.1")
    claim = f"refit,{','.join(names[1:])},net_benefit:0.1:0.2"
    made = run(Study.of(**SMALL, learner="linear", claim=claim, positive=rows.classes[1]), rows.X, rows.y)
    axes, (error, *least) = made.plot(), [one for one in made.claims if str(one.quantity) in names]
    bars, exact, measured, baseline = axes.lines
    assert [label.get_text() for label in axes.get_yticklabels()] == [*names]
    assert axes.get_xlabel() == "in %, by refit"
    bounds = [(0, 100 * error.risk), *((100 - 100 * one.risk, 100) for one in least)]
    np.testing.assert_array_equal(bars.get_xdata().reshape(-1, 3)[:, :2], bounds)
    assert bars.get_solid_capstyle() == "butt"  # else a bar would end beyond its bound
    ends = [[100 * low, 100 * high] for _, low, high in made.intervals] + [[np.nan] * 2] * 2
    np.testing.assert_array_equal(exact.get_xdata().reshape(-1, 3)[:, :2], ends)
    shares = [100 * one.part / one.rows for one in (error, *least[:-1])]
    np.testing.assert_allclose(measured.get_xdata(), [*shares, np.nan])  # the last follows from others
    assert (baseline.get_xdata()[0], *baseline.get_ydata()[:2]) == (
        *(100 * made.certificate.baseline.error, -0.4, 0.4),
    )


def test_scores_are_drawn_by_split_with_their_interval() -> None:
    rows, options = blobs(90, shift=2.0), {"learner": "linear,constant", "measure": "accuracy,auc"}
    found = evaluate(rows.X, rows.y, **options, resampling="kfold:5", interval="corrected_t")
    axes, entry, auc = found.plot(score="auc"), found.entries[0], found.scores[1]
    first, mean, *_, interval = axes.lines
    assert first.get_xdata().tolist() == found.of_splits(entry, auc).tolist()
    assert mean.get_xdata()[0] == pytest.approx(found.figures(entry, auc).mean)
    assert tuple(interval.get_xdata()[:2]) == found.interval(entry, auc)
    assert found.plot(given := Figure().add_subplot()) is given
    assert (axes.get_xlabel(), given.get_xlabel()) == ("auc of one split", "accuracy of one split")
    assert not evaluate(rows.X, rows.y, learner="tree", resampling="holdout:0.3").plot().get_legend()
    with pytest.raises(InputError, match="score='rmse' is not known: choose from accuracy, auc"):
        found.plot(score="rmse")


@pytest.mark.parametrize("name", ["bounds", "surface", "roc", "calibration", "decision_curve", "scores"])
def test_they_draw_on_given_axes_and_on_new_ones(linear: Result, name: str) -> None:
    given = Figure().add_subplot()
    assert getattr(linear.plot, name)(given) is given
    assert given.has_data()
    assert getattr(linear.plot, name)().has_data()


def test_what_cannot_be_drawn_is_refused_with_the_reason(result: Drawn) -> None:
    svm, _ = result  # whose scores rank and are no probabilities
    with pytest.raises(
        InputError, match=r"Calibration of this result: there is none: .* those of constant, "
    ):
        svm.plot.calibration()


def find_ticks(chart: Chart, along: str) -> list[str]:
    """Return what is written at an axis, from its start to its end on the page."""
    axes = Figure((figures.WIDTH / 72, chart.height / 72), layout="constrained").add_subplot()
    figures.draw_on(axes, chart)
    assert axes.figure is not None
    axes.figure.draw_without_rendering()
    axis = getattr(axes, f"{along}axis")
    low, high = sorted(axis.get_view_interval())
    return [tick.label1.get_text() for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


@pytest.mark.parametrize(
    ("scale", "values", "ticks"),
    [
        (Scale("C", log=True), [1e-3, 1e3], ["0.001", "0.01", "0.1", "1", "10", "100", "1000"]),
        (Scale("C", log=True), [1e-12, 1e1], ["1e−12", "1e−10", "1e−08", "1e−06", "0.0001", "0.01", "1"]),
        (Scale("k", log=True, whole=True), [3, 60], ["5", "10", "20", "50"]),
        (Scale("k", 3.2, 4.8, whole=True), [4, 4], ["4"]),
        (
            Scale("C", names=[f"{'x' * 20}{i}" for i in range(9)]),
            [0, 8],
            [f"{'x' * 20}{i}" for i in (0, 4, 8)],
        ),
    ],
)
def test_an_axis_has_ticks_that_can_be_read(scale: Scale, values: list[float], ticks: list[str]) -> None:
    assert find_ticks(Chart(scale, Scale("y"), [Mark(values, [0, 1], width=1.0)]), "x") == ticks


def test_charts_of_several_threads_are_those_of_one() -> None:
    charts, before = [EVERYTHING, SQUARES] * 4, dict(matplotlib.rcParams)
    alone = [write_svg(chart, str(i)) for i, chart in enumerate(charts)]
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(write_svg, charts, map(str, range(len(charts))))] == alone
    assert dict(matplotlib.rcParams) == before
