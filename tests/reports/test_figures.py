"""Charts: what is drawn stands inside its axes, in a page's own colours, and is the same for a notebook."""

import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import blobs
from matplotlib.figure import Figure

from ckcv_ray import Result, Study, run
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.reports import figures
from ckcv_ray.reports.figures import (
    Chart,
    Mark,
    Picture,
    Scale,
    Tiles,
    draw_on,
    draw_performance,
    draw_search,
    shorten_name,
    write_svg,
)
from ckcv_ray.runs.judged import judge_rows
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.settings import Axis, make_grid

X = np.array([1.0, 2.0, 5.0, 100.0])
NAMES = ("_hidden", "$x_1$", "<b>", "a" * 80)
EVERYTHING = Chart(
    Scale("<i>", log=True),
    Scale("$y$", 0.0, 1.0),
    [
        Mark(X, [0.1, np.nan, 0.3, 7.0], name="_line", width=1.0, dash=(2, 1)),
        *(Mark(X, 0.5, figures.RED, f"{shape} <b>", shape=shape) for shape in ["o", *figures.SHAPES]),
    ],
)
SQUARES = Chart(
    Scale("C", names=("1", "2", "3", "4")), Scale("gamma", names=NAMES, down=True),
    [Tiles(np.arange(4), np.ones(4), np.full(4, 0.9), np.array([3.0, 2.0, 1.0, 9.0]), "L_MS", 0.5)],
)  # fmt: skip


def words(svg: str) -> list[str]:
    """What is written in a chart."""
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


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
    assert set(re.findall(r"(?:fill|stroke)=\"([a-zA-Z]+)\"", svg)) == {figures.INK, "none"}


def test_names_are_text_that_fits_and_no_formula_markup_or_hidden_label() -> None:
    assert {"<i>", "$y$", "_line", "x <b>"} <= set(words(write_svg(EVERYTHING, "label")))
    shown = words(write_svg(SQUARES, "label"))
    assert set(map(shorten_name, NAMES)) <= set(shown)
    assert max(map(len, shown)) <= figures.MAX_NAME


def test_what_is_unknown_or_outside_is_not_drawn() -> None:
    marks = [Mark([1, 2, 3, 4], [1, np.nan, 1, 9], shape="o"), Mark([1, 2, 3, 4], [1, 1, np.nan, 1], width=1)]
    svg = write_svg(Chart(Scale(), Scale("", 0, 2), marks), "label")
    assert svg.count("<circle") == 2
    assert [path.count("L") for path in re.findall(r'd="(M[^"HVv]*)" fill="none"', svg)] == [1]


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.7, 12.4), (1e-9, 3e-9), (0.0, 4e6), (5.0, 5.1)])
@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_few_round_numbers_on_the_axis(ends: tuple[float, float], log: bool) -> None:
    low, high = (max(ends[0], 1e-9), ends[1]) if log else ends
    ticks = Scale(log=log).find_ticks((low, high), 6)
    assert (1 if log else 2) <= len(ticks) + (log and high < 10 * low) <= 7
    slack = 1e-6 * (high - low)
    assert all(low - slack <= value <= high + slack for value, _ in ticks)
    assert all(float(text) == pytest.approx(value, abs=1e-12) for value, text in ticks)


@pytest.mark.parametrize("chart", [EVERYTHING, SQUARES], ids=["marks", "squares"])
def test_axes_of_matplotlib_have_the_same_chart(chart: Chart) -> None:
    axes = Figure().add_subplot()
    draw_on(axes, chart)
    marks = [part for part in chart.parts if isinstance(part, Mark)]
    for line, mark in zip(axes.lines, marks, strict=True):
        assert np.array_equal(line.get_ydata(), np.broadcast_to(mark.y, X.shape), equal_nan=True)
    assert len(axes.collections) == len(chart.parts) - len(marks)
    x_ends, y_ends = chart.find_ends()
    assert (axes.get_xlim(), axes.get_ylim()) == (x_ends, y_ends[::-1] if chart.y.down else y_ends)
    assert (axes.get_xlabel(), axes.get_ylabel()) == (chart.x.label, chart.y.label)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, dict[str, Picture]]:
    out, rows = tmp_path_factory.mktemp("figures") / "run", blobs(160, shift=2.0)
    study = Study.of(k=(3, 4, 20), n_splits=3, certify="holdout", C=(0.1, 1.0, 10.0), gamma=(0.01, 1.0))
    made = run(study, rows.X, rows.y, out=out)
    pictures = [
        *draw_search(made, replay(out, made.problem)).values(),
        [*draw_performance(made, judge_rows(made))],
    ]
    return made, {picture.title: picture for section in pictures for picture in section}


def test_every_figure_has_a_table_as_wide_as_its_heads_or_a_reason(
    result: tuple[Result, dict[str, Picture]],
) -> None:
    _, pictures = result
    assert len(pictures) == 8
    for picture in pictures.values():
        assert {len(row) for row in picture.rows} == ({len(picture.heads)} if picture.chart else set())
        assert picture.caption.startswith("There is none: ") == (picture.svg == "")
    assert [title for title, picture in pictures.items() if not picture.chart] == ["Calibration"]


def test_the_landscape_has_what_the_table_of_candidates_says_of_the_winners_k(
    result: tuple[Result, dict[str, Picture]],
) -> None:
    made, pictures = result
    picture = pictures[f"L_MS over C and gamma at k = {made.k}"]
    rows = [row for row in made.candidates.to_pylist() if row["k_first"] <= made.k <= row["k_last"]]
    tiles, *_, star = picture.chart.parts
    values = [row["lower_bound"] if row["l_ms"] is None else row["l_ms"] for row in rows]
    assert sorted(tiles.values) == sorted(100 * value for value in values)
    assert picture.svg.count('stroke-width=".3"') == len(rows) == 6
    assert picture.heads == ("gamma \\ C", "0.1", "1", "10")
    (best,) = [row for row in rows if row["state"] == "winner"]
    x, y = picture.heads.index(f"{best['C']:g}"), [row[0] for row in picture.rows].index(f"{best['gamma']:g}")
    assert (star.x.tolist(), star.y.tolist()) == ([x - 1], [y])
    assert picture.rows[y][x] == ceil_percent(made.l_ms)


def test_a_grid_has_the_best_setting_at_each_pair_of_values() -> None:
    settings = [{"a": a, "b": b, "c": c} for a in (1.0, 2.0, 0.5) for b in ("x", "y") for c in (1, 2)]
    losses = np.random.default_rng(0).random(len(settings))
    grid = make_grid(settings[:-2], losses[:-2])
    assert (grid.x, grid.y, grid.joined) == (Axis("a", ("0.5", "1", "2")), Axis("b", ("x", "y")), True)
    assert grid.best[1, 0] == -1
    for (y, x), i in np.ndenumerate(grid.best):
        pair = (float(grid.x.values[x]), grid.y.values[y])
        alike = [j for j, one in enumerate(settings[:-2]) if (one["a"], one["b"]) == pair]
        assert i == min(alike, key=losses.__getitem__, default=-1)


def test_fewer_or_more_hyperparameters_than_a_grid_has_are_named_or_numbered() -> None:
    def name(*settings: dict[str, object]) -> tuple[Axis, Axis]:
        grid = make_grid(settings, np.zeros(len(settings)))
        return grid.x, grid.y

    none = Axis("", ("",))
    assert name({"a": 1}) == (none, none)
    assert name({"a": 1, "b": "x"}, {"a": 1, "b": "y"}) == (Axis("b", ("x", "y")), none)
    many = [{"a": float(a), "b": float(-a)} for a in range(50)]
    assert name(*many) == (Axis("setting", tuple(map(str, range(1, 51)))), none)
