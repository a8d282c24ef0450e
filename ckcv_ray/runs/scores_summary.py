"""Text summary of the scores of a procedure, as the command line prints it."""

from collections.abc import Iterator
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from ckcv_ray.core.scores import Score
from ckcv_ray.errors import counted
from ckcv_ray.study.assessment import DELTA, OUTER

if TYPE_CHECKING:
    from ckcv_ray.runs.assessed import Assessed, Figures


def summary(result: "Assessed") -> str:
    """Return the summary as text."""
    return "\n".join(_lines(result))


def rounded(bound: float, up: bool) -> str:
    """Format a bound, at least 0, with four digits, rounded to the safe side."""
    if not bound > 0:
        return "0"
    digits = 3 - floor(log10(bound))
    scaled = ceil(bound * 10.0**digits) if up else floor(bound * 10.0**digits)
    return f"{scaled * 10.0**-digits:.{max(0, digits)}f}"


def _lines(result: "Assessed") -> Iterator[str]:
    splits = counted(int(result.counted.sum()), "split")
    yield f"{result.problem.study.resampling.name}: {splits} of {counted(result.problem.task.n, 'row')}"
    width = max(len(entry.name) for entry in result.entries)
    tested = bounded = False
    for score in result.scores:
        yield f"\n{result.title(score)}"
        yield f"  {'':<{width}}  {'mean':>9}  {'sd':>9}  {'se':>9}  {'pooled':>9}"
        for entry in result.entries:
            yield f"  {entry.name:<{width}}  {_shown(result.figures(entry, score))}".rstrip()
        for entry in result.entries:
            if curve := result.learning_curve(entry, score):
                points = ", ".join(f"{size} {mean:.4f}" for size, mean, _ in curve)
                yield f"  {entry.name} by rows fitted on: {points}"
        if result.problem.sizes[OUTER].n_splits == 1:
            claims = list(_claims(result, score))
            bounded = bounded or bool(claims)
            yield from claims
        compared = result.compared(score)
        tested = tested or bool(compared)
        for other, best, test in compared:
            yield (
                f"  {other.name} - {best.name}: {_signed(test.difference)}, 95 % interval "
                f"{_signed(test.low)} to {_signed(test.high)}, p {test.p:.3f}"
            )
    for sentence in result.doubts:
        yield f"\n{sentence}"
    if bounded:
        yield (
            "\nA bound holds for one model, of a line that was named before its score was seen, on "
            "rows\nthat are independent."
        )
    if result.unbounded and any(score.bound for score in result.scores):
        yield f"\nNo bound is proven for any model on new rows: {result.unbounded}."
    if tested:
        yield (
            "\nThe test is the corrected resampled t-test (Nadeau, Bengio 2003), a heuristic: splits "
            "share\nrows. A difference found among many comparisons may be chance."
        )


def _claims(result: "Assessed", score: Score) -> Iterator[str]:
    """Yield what is proven of the models of a single split."""
    word = "at least" if score.greater else "at most"
    for entry in result.entries:
        (bound,) = result.bounds(entry, score)
        if bound == bound:
            text = rounded(bound, up=not score.greater)
            yield f"  {entry.name}: {word} {text} on new rows, with probability {100 * (1 - DELTA):g} %"


def _shown(found: "Figures") -> str:
    if found.missing or found.undefined:
        lost = [
            f"{count} {what}"
            for count, what in ((found.missing, "failed"), (found.undefined, "not defined"))
            if count
        ]
        unknown = found.pooled is None or found.pooled != found.pooled
        pooled = "" if unknown else f"; pooled {found.pooled:.4g}"
        return f"incomplete: {', '.join(lost)}{pooled}"
    figures = (found.mean, found.deviation, found.error, found.pooled)
    return "  ".join(map(_figure, figures))


def _figure(value: float | None) -> str:
    if value is None or value != value:
        return " " * 9
    return f"{value:9.4f}" if _is_usual(value) else f"{value:9.4g}"


def _signed(value: float) -> str:
    return f"{value:+.4f}" if _is_usual(value) else f"{value:+.4g}"


def _is_usual(value: float) -> bool:
    """Return whether four decimals show a number well."""
    return value == 0 or 1e-3 <= abs(value) < 10_000
