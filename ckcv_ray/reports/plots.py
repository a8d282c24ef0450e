"""Plots of a result for notebooks, as axes of matplotlib that can be changed further."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ckcv_ray.errors import InputError
from ckcv_ray.reports.figures import (
    INK,
    L_EE,
    L_MS,
    MARK,
    plot_calibration,
    plot_decision_curve,
    plot_roc,
    plot_scores,
    shorten_name,
)
from ckcv_ray.runs.judged import Judged, calibrate, count_scores, judge_rows, trace_net_benefit, trace_roc
from ckcv_ray.runs.progress import is_notebook
from ckcv_ray.runs.values import ResultValues

WIDE_AXIS = 20  # of its ends: beyond, it is logarithmic
NO_RUN = "this is an evaluation, which has {}: ckcv_ray.run makes a study that has"
NO_SUCH = "there is no {} of this result: {}"


class Plots(NamedTuple):
    """What can be drawn of a result: each method returns the axes it has drawn on.

    Attributes:
        result: the finished study.
    """

    result: ResultValues

    def bounds(self, axes: Axes | None = None) -> Axes:
        """Draw what is proven of the error by each claim, next to L_EE, what was measured, and the baseline.

        Raises:
            InputError: it is an evaluation, which has no claims.
        """
        self._require_claims("no claims")
        axes, certificate = _make_axes(axes), self.result.certificate
        claims = [claim for claim in certificate.claims if claim.quantity.is_error]
        of_numbers = certificate.sample.numbers is not None
        names = [f"{claim.certification}: {claim.classifier}" for claim in claims]
        axes.barh(range(len(claims)), [100 * claim.risk for claim in claims], 0.6, color=L_MS, alpha=0.8)
        baseline = certificate.sample.baseline
        for value, name, colour in (
            (baseline["error"], "baseline", INK),
            (certificate.counts.error, "measured (mean of F*)", MARK),
            (certificate.winner.l_ee, "minimised, on estimate sets" if of_numbers else "L_EE", L_EE),
        ):
            axes.axvline(100 * value, color=colour, ls="--", lw=1.2, label=name)
        axes.set_yticks(range(len(claims)), names, parse_math=False)
        axes.invert_yaxis()
        what = "mean error, in % of the clip" if of_numbers else "error, in %"
        axes.set_xlabel(f"upper bound on the {what}")
        axes.set_xlim(left=0)
        axes.legend()
        return axes

    def surface(self, axes: Axes | None = None) -> Axes:
        """Draw L_MS, or its lower bound, of the winner's learner at the winner's k over its parameters.

        With two parameters of numbers as colours, with one as a line.

        Raises:
            InputError: it is an evaluation, or the settings differ in no parameter of numbers.
        """
        self._require_claims("no candidates")
        k, winner = self.result.k, self.result.setting
        here = (row for row in self.result.candidates.to_pylist() if row["k_first"] <= k <= row["k_last"])
        rows = [row for row in here if row.get("learner") == winner.get("learner")]
        names = [name for name in winner if _varies([row.get(name) for row in rows])][:2]
        if not names:
            raise InputError(NO_SUCH.format("surface", "its settings differ in no parameter of numbers"))
        values = [100 * (row["lower_bound"] if row["l_ms"] is None else row["l_ms"]) for row in rows]
        points = [np.array([row[name] for row in rows], float) for name in names]
        axes = _make_axes(axes)
        if len(names) == 1:
            order = np.argsort(points[0])
            axes.plot(points[0][order], np.array(values)[order], "o-", color=L_MS)
            axes.set_ylabel("L_MS or its lower bound, in %")
        else:
            dots = axes.scatter(points[0], points[1], c=values, cmap="viridis", marker="s", s=80)
            assert axes.figure is not None
            axes.figure.colorbar(dots, ax=axes).set_label("L_MS or its lower bound, in %")
            axes.set_ylabel(shorten_name(names[1]), parse_math=False)
            axes.plot(*([winner[name]] for name in names), "*", color="white", markeredgecolor="black", ms=12)
        for found, scale in zip(points, (axes.set_xscale, axes.set_yscale), strict=False):
            if found.min() > 0 and found.max() > WIDE_AXIS * found.min():
                scale("log")
        axes.set_xlabel(shorten_name(names[0]), parse_math=False)
        return axes

    def roc(self, axes: Axes | None = None) -> Axes:
        """Draw the ROC curves of the models on the rows that the first claim counts, and where they work.

        Raises:
            InputError: it is an evaluation, there are more than two classes, or no scores.
        """
        found = trace_roc(self._judge())
        if self.result.task.n_classes > 2:
            found = None
        lack = "it takes two classes, and models that give scores"
        return _plot(axes, "ROC curve", lack, plot_roc, found)

    def calibration(self, axes: Axes | None = None) -> Axes:
        """Draw observed shares against predicted probabilities, on the rows that the first claim counts.

        Raises:
            InputError: it is an evaluation, or the models give no probabilities.
        """
        lack, found = "the models give no probabilities", calibrate(self._judge())
        return _plot(axes, "calibration", lack, plot_calibration, found)

    def decision_curve(self, axes: Axes | None = None) -> Axes:
        """Draw net benefits over the probability from which on a row is worth flagging, and what is proven.

        Curves are measured on the rows that the first claim counts; points are proven, if the study claims
        net benefits such as ``net_benefit:0.02:0.1``.

        Raises:
            InputError: it is an evaluation, there are more than two classes, or rows of one class alone.
        """
        found = trace_net_benefit(self.result, self._judge())
        lack = "it takes two classes, and rows of both"
        return _plot(axes, "decision curve", lack, plot_decision_curve, found)

    def scores(self, axes: Axes | None = None) -> Axes:
        """Draw the distribution of the scores of each class, on the rows that the first claim counts.

        Raises:
            InputError: it is an evaluation, or the models give no scores.
        """
        task, judged = self.result.task, self._judge()
        classes, x = [str(label) for label in task.classes], "probability of the class of the row"
        if len(classes) == 2:
            x = f"score (larger: {classes[judged.positive]})"
        found = count_scores(judged, task.n_classes)
        name, lack = "distribution of scores", "the models give none"
        return _plot(axes, name, lack, plot_scores, found, classes, x)

    def _require_claims(self, what: str) -> None:
        if self.result.finished is None:
            raise InputError(NO_RUN.format(what))

    def _judge(self) -> Judged:
        self._require_claims("no claims")
        return judge_rows(self.result)


def _plot(axes: Axes | None, name: str, lack: str, plot: Callable[..., None], found: Any, *more: Any) -> Axes:
    """Return axes with a plot of what was found; an InputError says what is lacking if that is None."""
    if found is None:
        raise InputError(NO_SUCH.format(name, lack))
    axes = _make_axes(axes)
    plot(axes, found, *more)
    return axes


def _varies(values: list[Any]) -> bool:
    return len(set(values)) > 1 and all(isinstance(value, int | float) for value in values)


def _make_axes(axes: Axes | None) -> Axes:
    """Return the axes to draw on: those given, or new ones, which a notebook shows below their cell."""
    if axes is not None:
        return axes
    if not is_notebook():
        return Figure(layout="constrained").add_subplot()
    from matplotlib import pyplot

    return pyplot.figure(layout="constrained").add_subplot()
