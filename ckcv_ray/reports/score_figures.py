"""Figures of scores as SVG, without text of the data: every split's, and means over a hyperparameter."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Values
from ckcv_ray.reports.figures import INK, L_MS, WIDTH, inline_svg, new_figure

MOST_STRIPS, MOST_CURVES = 40, 6
LOG_RATIO = 50


class Strip(NamedTuple):
    """The scores of all splits at one line of a table, with its number."""

    number: str
    values: Values


class Curve(NamedTuple):
    """A score over a hyperparameter, or over numbers of rows.

    Attributes:
        parameter, score: their names.
        x: values of the hyperparameter, ascending.
        mean, deviation: over splits, of the shape of x.
    """

    parameter: str
    score: str
    x: Values
    mean: Values
    deviation: Values


def draw_strips(strips: Sequence[Strip], score: str, label: str) -> str:
    """Draw a row of dots for each of the first strips, a dot for each split, and a line at their mean."""
    shown = strips[:MOST_STRIPS]
    with new_figure("strips", (WIDTH, 0.9 + 0.3 * len(shown))) as figure:
        axes = figure.add_subplot()
        for y, strip in enumerate(shown):
            axes.plot(
                strip.values,
                np.full(len(strip.values), y),
                "o",
                color=L_MS,
                markersize=4.5,
                alpha=0.5,
                markeredgewidth=0,
            )
            if len(strip.values):
                axes.vlines(float(np.mean(strip.values)), y - 0.36, y + 0.36, color=INK, lw=1.4)
        axes.set_yticks(range(len(shown)), [strip.number for strip in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel(f"{score} of one split")
        return inline_svg(figure, label)


def draw_curves(curves: Sequence[tuple[str, Curve]], label: str) -> str:
    """Draw scores against numbers of rows: a numbered line for each of the first curves."""
    with new_figure("curves", (WIDTH, 2.7)) as figure:
        axes = figure.add_subplot()
        for number, curve in curves[:MOST_CURVES]:
            axes.errorbar(
                curve.x,
                curve.mean,
                curve.deviation,
                fmt="o-",
                color=L_MS,
                markersize=4,
                lw=1.2,
                elinewidth=0.6,
            )
            axes.annotate(
                number, (curve.x[-1], curve.mean[-1]), (6, 0), textcoords="offset points", va="center"
            )
        axes.set_xlabel("rows fitted on")
        axes.set_ylabel(curves[0][1].score)
        return inline_svg(figure, label)


def draw_curve(curve: Curve, label: str) -> str:
    """Draw the mean over splits against the hyperparameter, and a band of a standard deviation."""
    with new_figure("curve", (WIDTH, 2.7)) as figure:
        axes = figure.add_subplot()
        axes.fill_between(
            curve.x, curve.mean - curve.deviation, curve.mean + curve.deviation, color=L_MS, alpha=0.2, lw=0
        )
        axes.plot(curve.x, curve.mean, "o-", color=L_MS, markersize=4.5)
        if curve.x.min() > 0 and curve.x.max() > LOG_RATIO * curve.x.min():
            axes.set_xscale("log")
        axes.set_xlabel("value")
        axes.set_ylabel(curve.score)
        return inline_svg(figure, label)
