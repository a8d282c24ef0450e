"""Resamplings by name, and what text describes."""

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any, TypeVar

from ckcv_ray.core.options import options, register_part
from ckcv_ray.core.resampling import complete, drawn, folds
from ckcv_ray.core.resampling.base import Resampling, Splits
from ckcv_ray.errors import InputError, explain_removed_option
from ckcv_ray.validation import quote, suggest

Kind = TypeVar("Kind", bound=type[Resampling])
RESAMPLINGS: dict[str, Any] = {
    kind.name: kind
    for kind in (
        complete.Complete,
        complete.Rotation,
        drawn.SingleSplit,
        folds.KFold,
        folds.RepeatedKFold,
        folds.DrawnFolds,
        folds.ForwardSplits,
        folds.ColumnFolds,
        folds.LeaveOneOut,
        drawn.Subsampling,
        drawn.Bootstrap,
        drawn.Bootstrap632,
        drawn.Bootstrap632Plus,
        drawn.OptimismBootstrap,
        folds.NestedSplits,
        Splits,
    )
}
CERTIFIABLE = {name: kind for name, kind in RESAMPLINGS.items() if kind.selects}
NESTED: dict[str, Callable[..., folds.NestedSplits]] = {
    "nested_halves": lambda k=5: folds.NestedSplits(folds.KFold(k), drawn.SingleSplit(0.5)),
    "nested": lambda outer=5, inner=5: folds.NestedSplits(folds.KFold(outer), folds.KFold(inner)),
}
FORMS = (
    "holdout:0.3, kfold:10, kfold:4:last, repeated_kfold:10x5, drawn_folds:10, time:5, time:5:2, "
    "column:fold, loo, subsampling:50:0.25, bootstrap:50, bootstrap632:50, bootstrap632plus:50, "
    "optimism:50, nested_halves:5, nested:5:3"
)


def register_resampling(kind: Kind) -> Kind:
    """Register a resampling under its name, by which text and the files of a run refer to it; a decorator.

    Raises:
        InputError: another resampling has that name.
    """
    return register_part(kind, RESAMPLINGS)


def parse_resampling(text: str) -> Resampling:
    """Return the resampling that text such as kfold:10 names; values that are left out have defaults.

    Raises:
        InputError: it names none, or a value is out of range.
    """
    name, _, rest = text.strip().partition(":") if isinstance(text, str) else ("", "", "")
    kind = RESAMPLINGS.get(name)
    make: Any = NESTED.get(name, kind)
    if make is None or make is Splits:
        if gone := explain_removed_option("resampling", name):
            raise InputError(gone)
        raise InputError(
            f"resampling={quote(text)} is not known: expected {FORMS}; with a certification "
            f"{', '.join(CERTIFIABLE)}{suggest(name, RESAMPLINGS)}"
        )
    words = rest.split(kind.separator if kind else ":") if rest else []
    fields = kind.words.get(words[-1], {}) if kind and words else {}
    words = words[:-1] if fields else words
    if len(words) > len(signature(make).parameters if name in NESTED else make.in_text):
        raise InputError(f"resampling={text!r} has more values than {name} takes: expected {FORMS}")
    try:
        parse = str if kind is folds.ColumnFolds else _parse_number
        resampling: Resampling = make(*map(parse, words), **fields)
    except InputError as error:
        raise InputError(f"resampling={quote(text)}: {error}") from None
    return resampling


def _parse_number(word: str) -> float:
    try:
        return int(word) if word.strip().lstrip("+-").isdigit() else float(word)
    except ValueError:
        raise InputError(f"{word!r} is no number: expected a resampling such as {FORMS}") from None


def add_strata(resampling: Resampling) -> Resampling:
    """Return a resampling that gives each part the same share of every class.

    Raises:
        InputError: there is no such form of it.
    """
    if isinstance(resampling, folds.NestedSplits):
        return folds.NestedSplits(add_strata(resampling.outer), add_strata(resampling.inner))
    if "stratify" not in options(resampling):
        able = [name for name, kind in RESAMPLINGS.items() if "stratify" in options(kind)]
        raise InputError(f"stratify is for {', '.join(able)}, not {resampling.name}: leave it out")
    if isinstance(resampling, folds.KFold) and resampling.remainder == "last":
        raise InputError(
            "stratify deals rows to the folds in turn, so no fold takes the rest: leave it out, or choose "
            f"kfold:{resampling.folds}"
        )
    return replace(resampling, stratify=True)  # type: ignore[type-var]
