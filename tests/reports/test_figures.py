"""Pictures: what is drawn of a landscape, of values of k and of single splits, in a page's own colours."""

import re
from html import unescape

import numpy as np
from conftest import blobs

from ckcv_ray import Study
from ckcv_ray.learners.base import Space
from ckcv_ray.reports import figures
from ckcv_ray.reports.figures import Axis, Landscape, Span
from ckcv_ray.reports.selection import PATH, STEP, name_axes
from ckcv_ray.study.problem import Problem

C, GAMMA = Axis("C", ("0.1", "1", "10")), Axis("gamma", ("0.01", "1"))
AT = Landscape(
    steps=C,
    paths=GAMMA,
    value=np.array([[0.2, 0.3, 0.1], [0.4, 0.25, 0.3]]),
    splits=np.array([[5, 5, 5], [2, 5, 1]]),
    failed=np.zeros((2, 3), np.bool_),
    left_open=np.zeros((2, 3), np.bool_),
    n_splits=5,
    best=(0, 2),
)
WINNER = Span(3, 3, 133, "winner", 0.1, "C = 1, gamma = 1", 0.1, 0.11)
BEATEN = WINNER._replace(first=6, last=6, state="beaten", setting="", l_ms=None, l_ee=None, lower_bound=0.2)


def squares(svg: str) -> list[tuple[float, float]]:
    """Width and height of each tile with a line around it."""
    found = []
    for path in re.findall(r'<path d="(M [^"]*z)\s*"[^>]*stroke-width: 0\.4', svg):
        x, y = np.array(re.findall(r"[ML] ([\d.]+) ([\d.]+)", path), float).T
        found.append((float(np.ptp(x)), float(np.ptp(y))))
    return found


def words(svg: str) -> list[str]:
    """What is written in a picture."""
    return [unescape(text).strip() for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def test_every_candidate_is_a_square_the_smaller_the_fewer_splits_it_has() -> None:
    sides = [width for width, _ in squares(figures.draw_landscape(AT, "label"))]
    assert len(sides) == 6
    full = sides[0]
    assert [round(side / full, 2) for side in sides] == [1, 1, 1, round(0.66 * 0.4 / 0.98, 2), 1, 0.13]


def test_what_does_not_exist_or_failed_is_no_square() -> None:
    value = AT.value.copy()
    value[1, 1:] = np.nan
    assert len(squares(figures.draw_landscape(AT._replace(value=value), "label"))) == 4
    drawn = figures.draw_landscape(AT._replace(failed=AT.value == 0.2), "label")
    assert len(squares(drawn)) == 5
    assert figures.draw_landscape(AT, "label").count(figures.MARK) < drawn.count(figures.MARK)


def test_axes_are_named_and_no_name_is_a_formula_or_markup() -> None:
    steps = Axis("$x_1$ <b>", ("$\\frac", "<script>", "100 %"))
    drawn = figures.draw_landscape(AT._replace(steps=steps), '"<label>"')
    assert {"gamma", "0.01", steps.name, *steps.values} <= set(words(drawn))
    assert 'aria-label="&quot;&lt;label&gt;&quot;"' in drawn


def test_an_open_candidate_is_a_diamond_and_takes_no_colour_from_the_others() -> None:
    value, left_open = AT.value.copy(), AT.left_open.copy()
    value[1, 0], left_open[1, 0] = 0.001, True
    drawn = figures.draw_landscape(AT._replace(value=value, left_open=left_open), "label")
    plain = figures.draw_landscape(AT, "label")
    assert len(squares(drawn)) == len(squares(plain)) - 1
    without = figures.draw_landscape(AT._replace(value=np.where(left_open, np.nan, AT.value)), "label")
    assert drawn.count("<use") == without.count("<use") + 1, "a marker more"
    assert squares(without) == squares(drawn)
    colours = [re.findall(r"fill: (#\w+)", svg) for svg in (drawn, without)]
    assert colours[0] == colours[1]


def test_a_picture_takes_the_colour_of_the_text_around_it_and_has_the_same_bytes() -> None:
    def draw() -> list[str]:
        spread = figures.draw_spread([0.1, 0.2], [0.2, 0.3], "label")
        folds = figures.draw_folds([WINNER, BEATEN], "label")
        return [figures.draw_landscape(AT, "label"), folds, spread]

    assert draw() == draw()
    for drawn in draw():
        assert "currentColor" in drawn
        assert figures.INK not in drawn
        assert "<image" not in drawn


def test_the_axes_of_grids_are_their_names() -> None:
    problem = Problem.of(Study.paper(C=(0.1, 1.0), gamma=(0.25, 0.5, 2.0)), blobs(30))
    axes = Axis("C", ("0.1", "1")), Axis("gamma", ("0.25", "0.5", "2"))
    assert name_axes(problem.learner.space) == axes


def test_axes_of_other_search_spaces_are_named_or_counted() -> None:
    depth = [{"rule": "a", "depth": 1}, {"rule": "a", "depth": 2}]
    assert name_axes(Space([depth])) == (Axis("depth", ("1", "2")), Axis("rule", ("a",)))
    shorter = [{"rule": "b", "depth": 1}]
    assert name_axes(Space([depth, shorter])) == (Axis("depth", ("1", "2")), Axis("rule", ("a", "b")))
    other = [{"rule": "b", "depth": 7}]
    assert name_axes(Space([depth, other])) == (Axis(STEP, ("1", "2"), True), Axis("rule", ("a", "b")))
    same = [{"rule": "a", "depth": 3}]
    assert name_axes(Space([depth, same])) == (Axis(STEP, ("1", "2"), True), Axis(PATH, ("1", "2"), True))
    grid = [[{"rule": rule, "share": share}] for rule in ("a", "b") for share in (0.5, 1.0)]
    steps, paths = name_axes(Space(grid))
    assert paths == Axis("rule, share", ("a, 0.5", "a, 1", "b, 0.5", "b, 1"))
    assert (steps, steps.absent) == (Axis(STEP, ("1",), True), True)


def test_lines_have_names_that_are_no_formula_and_fit() -> None:
    names = ["_hidden", "$x$", "<b>", "a" * 80]
    values = [np.array([0.1, 0.2])] * 4
    drawn = words(figures.draw_strips(values, names, "accuracy", "label"))
    shown = [figures.shorten_name(name) for name in names]
    assert set(shown) <= set(drawn)
    assert max(map(len, shown)) <= figures.MAX_NAME
    curve = figures.Curve("C", "accuracy", np.array([10.0, 20.0]), np.array([0.1, 0.2]), np.zeros(2))
    assert "_hidden" not in words(figures.draw_validation([curve], ["_hidden"], "label")), "one needs no name"
    assert {"_hidden", "$x$"} <= set(words(figures.draw_validation([curve] * 2, ["_hidden", "$x$"], "label")))
