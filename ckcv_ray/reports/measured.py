"""Figures of the judged rows, with captions and tables; where one is missing, its caption says why."""

from collections.abc import Iterator

import numpy as np

from ckcv_ray.core.percent import floor_percent, format_percent
from ckcv_ray.errors import pluralize
from ckcv_ray.reports.figures import (
    LOW,
    MAX_BARS,
    MAX_DRAWN_CLASSES,
    SQUARE,
    Picture,
    draw_importance,
    draw_plot,
    draw_predicted_numbers,
    plot_calibration,
    plot_decision_curve,
    plot_roc,
    plot_scores,
    shorten_name,
)
from ckcv_ray.runs.judged import (
    BY_BEST,
    BY_PROBABILITY,
    GRID,
    TABLE_GRID,
    Judged,
    calibrate,
    count_scores,
    permute_columns,
    trace_net_benefit,
    trace_roc,
)
from ckcv_ray.runs.values import ResultValues

NET_BENEFIT = "net_benefit:"
LISTED_BENEFITS = 11  # rows in the table of the decision curve
MAX_IMPORTANT = 50  # columns in the table of importance
ABOUT_CUT_OFF = {
    BY_PROBABILITY: "Probabilities are converted from the share of the class in these rows (Bayes). ",
    BY_BEST: "The best cut-off is chosen on the rows it is measured on, so its curve is too good. ",
    "": "",
}
CURVES = " Curves are of single models, whose scores are on different scales."


def draw_performance(result: ResultValues, judged: Judged | None) -> Iterator[Picture]:
    """Yield the figures of judged rows; none if none are known."""
    if judged is None:
        return
    if result.task.has_numbers:
        yield _draw_numbers(result, judged)
        return
    for draw in (_draw_roc, _draw_calibration, _draw_net_benefit, _draw_scores, _draw_importance):
        yield draw(result, judged)


def _draw_roc(result: ResultValues, judged: Judged) -> Picture:
    title = "ROC curve"
    found = trace_roc(judged)
    if result.task.n_classes > 2:
        instead = "the confusion matrix says which are mistaken for which"
        return Picture(title, "", f"There is none for more than two classes: {instead}.")
    if judged.rank is None:
        return Picture(title, "", "There is none, since the models give classes and no scores.")
    if found is None:
        return Picture(title, "", "There is none, since no model judged rows of both classes.")
    classes, area = result.task.classes, float(found.areas.mean())
    several = len(found.areas) > 1
    of = f"mean AUC of {len(found.areas)} models" if several else "AUC"
    caption = (
        f"{of} {area:.4f}, measured. A row counts as positive if it is of the class "
        f"‘{classes[judged.positive]}’. The star is where the rows are classified: "
        f"{format_percent(found.point[0])} false and {format_percent(found.point[1])} true positive."
        f"{CURVES if several else ''}"
    )
    if found.left_out:
        caption += f" {pluralize(found.left_out, 'model')} judged rows of one class alone."
    mean = found.curves.mean(axis=0)
    rows = [(format_percent(x), format_percent(float(np.interp(x, GRID, mean)))) for x in TABLE_GRID]
    label = f"ROC curve: {of} {area:.4f}. Values are in the table below the figure."
    svg = draw_plot("roc", SQUARE, label, plot_roc, found)
    return Picture(title, svg, caption, ("false positive rate", "true positive rate"), rows)


def _draw_calibration(result: ResultValues, judged: Judged) -> Picture:
    title = "Calibration"
    found = calibrate(judged)
    if found is None:
        return Picture(title, "", "There is none, since the models give no probabilities.")
    two = result.task.n_classes == 2
    of = f"of ‘{result.task.classes[judged.positive]}’" if two else "of the predicted class"
    error = format_percent(found.error)
    caption = (
        f"Each dot is about a tenth of the rows, by the predicted probability {of}. Mean difference of "
        f"predicted and observed: {error}."
    )
    rows = [
        (
            f"{format_percent(low)} to {format_percent(high)}",
            format_percent(mean), format_percent(observed), f"{n:,}",
        )
        for low, high, mean, observed, n in zip(
            found.low.tolist(), found.high.tolist(), found.mean.tolist(), found.observed.tolist(),
            found.rows.tolist(), strict=True,
        )
    ]  # fmt: skip
    label = f"Calibration: mean difference {error}. Values are in the table below the figure."
    heads = ("predicted", "mean", "observed", "rows")
    svg = draw_plot("calibration", SQUARE, label, plot_calibration, found)
    return Picture(title, svg, caption, heads, rows)


def _draw_net_benefit(result: ResultValues, judged: Judged) -> Picture:
    """Return the decision curve as a figure of the page with its table, or why there is none."""
    title = "Decision curve"
    found = trace_net_benefit(result, judged)
    if found is None:
        return Picture(title, "", "There is none: it takes two classes, and rows of both.")
    claims = () if result.finished is None else result.certificate.claims.claims
    benefits = [claim for claim in claims if str(claim.quantity).startswith(NET_BENEFIT)]
    if found.points:
        of_proven = "The points are proven, and a line leads from each to what was measured there."
    elif any(not claim.shares_rule(claims[0]) for claim in benefits):
        of_proven = "What is proven of net benefits is of another cut-off, and not drawn."
    else:
        such = f"net_benefit:{found.prevalence:.2g}:0.1"
        of_proven = f"Nothing in it is proven: a claim such as {such} would prove a point."
    caption = (
        f"Net benefit where {format_percent(found.prevalence)} are positive, in percent of all rows, by the "
        "probability from which on a row is worth flagging. All curves are measured. "
        f"{ABOUT_CUT_OFF[found.cut_off]}{of_proven}"
    )
    listed = np.unique(np.linspace(0, len(found.worth) - 1, LISTED_BENEFITS).astype(int)).tolist()
    columns = (found.worth, found.by_rule, found.by_cut_off, found.everybody)
    rows = [
        (*("–" if column is None else format_percent(float(column[i])) for column in columns), "–")
        for i in listed
    ]
    proven = [
        (
            format_percent(point.worth),
            format_percent(point.measured),
            "–",
            "–",
            f"at least {floor_percent(point.proven)}",
        )
        for point in found.points
    ]
    heads = ("worth flagging from", "this rule", found.cut_off or "–", "all rows", "proven of this rule")
    of = f"{title} at a prevalence of {format_percent(found.prevalence)}"
    label = f"{of}. Values are in the table below the figure."
    svg = draw_plot("decision", SQUARE, label, plot_decision_curve, found)
    return Picture(title, svg, caption, heads, [*rows, *proven])


def _draw_scores(result: ResultValues, judged: Judged) -> Picture:
    title = "Distribution of scores by class"
    found, two = count_scores(judged, result.task.n_classes), result.task.n_classes == 2
    if found is None:
        why = "no scores that order rows" if two else "no probabilities"
        return Picture(title, "", f"There is none, since the models give {why}.")
    classes = [str(label) for label in result.task.classes]
    x, where = "probability given to the class of the row", "The further right, the better."
    if two:
        x = f"score (larger: {shorten_name(classes[judged.positive])})"
        where = f"A larger score speaks for ‘{classes[judged.positive]}’."
        if len(np.unique(judged.classifier)) > 1:
            where += " Scores of different models, on scales of their own, are in one picture."
    if len(classes) > MAX_DRAWN_CLASSES:
        where += f" The first {MAX_DRAWN_CLASSES} classes are drawn."
    shown = classes[:MAX_DRAWN_CLASSES]
    rows = [
        (f"{low:.3g} to {high:.3g}", *(f"{n:,}" for n in column))
        for low, high, column in zip(
            found.edges[:-1], found.edges[1:], found.counts[: len(shown)].T.tolist(), strict=True
        )
    ]
    of = pluralize(len(classes), "class", "classes")
    label = f"Distribution of scores of {of}. Values are in the table below the figure."
    caption = f"Share of the rows of each class, by score. {where}"
    svg = draw_plot("scores", LOW, label, plot_scores, found, classes, x)
    return Picture(title, svg, caption, ("score", *shown), rows)


def _draw_importance(result: ResultValues, judged: Judged) -> Picture:
    title = "Permutation importance"
    found = permute_columns(judged, result.task.n_classes, result.study.seed)
    if found is None:
        why = "there are too many columns" if judged.parts else "the folder keeps no models of single splits"
        return Picture(title, "", f"There is none, since {why}.")
    names = result.task.features
    order = np.argsort(-found.rise, kind="stable").tolist()
    caption = (
        "Measured, not proven: how much the share of wrong rows rises when the values of one column are "
        f"shuffled, on {found.rows:,} of the judged rows; lines are standard deviations over shuffles. "
        "Columns that say the same share their importance, and nothing here says what causes what."
    )
    if len(names) > MAX_BARS:
        caption += f" The first {MAX_BARS} of {len(names):,} are drawn."
    rows = [
        (
            str(names[i]),
            *(format_percent(value).removesuffix(" %") for value in (found.rise[i], found.spread[i])),
        )
        for i in order[:MAX_IMPORTANT]
    ]
    label = "Permutation importance of the columns. Values are in the table below the figure."
    heads = ("column", "rise, in points", "sd")
    return Picture(title, draw_importance(found, names, order, label), caption, heads, rows)


def _draw_numbers(result: ResultValues, judged: Judged) -> Picture:
    truth, predicted = judged.y.astype(np.float64), judged.label.astype(np.float64)
    errors = np.abs(predicted - truth)
    label = "Predicted against true numbers. Quantiles of the errors are in the table below the figure."
    levels = (0.5, 0.75, 0.9, 0.95, 1.0)
    rows = [(format_percent(q), f"{v:.4g}") for q, v in zip(levels, np.quantile(errors, levels), strict=True)]
    return Picture(
        "Predicted and true numbers",
        draw_predicted_numbers(predicted, truth, result.task.target, label),
        "Each dot is a judged row; on the dotted line the two are equal.",
        ("share of the rows", "absolute error at most"),
        rows,
    )
