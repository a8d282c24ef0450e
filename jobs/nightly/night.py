"""One night: measure it, measure again what is suspect, add it to the history, judge it, write its page."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from ckcv_ray.data import task as data
from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import write_whole
from ckcv_ray.version import VERSION
from jobs.nightly.figures import PLANS, measure, recount
from jobs.nightly.history import History, Night, machine
from jobs.nightly.page import page
from jobs.nightly.verdict import Verdict, judge, suspects

LONGER = 3
PAGE = "nightly.html"


def settled(history: list[Night], night: str, groups: list[str], plan: str | None) -> tuple[bool, str]:
    """Whether this night is there already, and the plan.

    Raises:
        InputError: it is there without some of the groups, or the history is one of another plan.
    """
    own = history[-1].plan if history else plan or "generators"
    if own != (plan or own):
        raise InputError(f"plan={plan!r}: this history is one of the plan {own!r}; choose another --out")
    if own not in PLANS:
        raise InputError(f"plan={own!r}: choose from {', '.join(PLANS)}")
    there = next((one for one in history if one.name == night), None)
    if there is not None and (missing := [group for group in groups if group not in there.groups()]):
        raise InputError(f"night {night!r} is there, without {', '.join(missing)}: give another --night")
    return there is not None, own


def measured(night: str, commit: str, plan: str, groups: list[str], repeats: int) -> Night:
    """A night, measured now."""
    for source in PLANS[plan].sources():
        data.read(source)  # a missing archive is told before an hour of work
    began, place = datetime.now(UTC), machine()
    return Night(night, began, commit, VERSION, plan, place, tuple(measure(PLANS[plan], groups, repeats)))


def confirmed(night: Night, nights: list[Night], threshold: float, repeats: int) -> Night:
    """The night, with what is suspect in it measured again for longer before it is an alarm."""
    doubted = suspects(judge([*nights, night], night.name, threshold))
    if not doubted:
        return night
    longer = LONGER * repeats
    for key in sorted(doubted):
        print(f"suspect: {', '.join(key)}; its group is measured again, repeats: {longer}", file=sys.stderr)
    again = measure(PLANS[night.plan], list(dict.fromkeys(group for group, _, _ in sorted(doubted))), longer)
    return night._replace(figures=tuple(recount(night.figures, doubted, again)))


def hold(
    out: Path,
    name: str,
    threshold: float,
    groups: list[str],
    plan: str | None,
    repeats: int,
    commit: str,
) -> Verdict:
    """Measure a night that is not there yet, add it to the history, judge it, and write its page."""
    history = History(out / "history")
    with history.held():
        nights = history.nights()
        there, chosen = settled(nights, name, groups, plan)
        if there:
            print(f"night {name} is there: it is not measured again", file=sys.stderr)
        else:
            found = measured(name, commit, chosen, groups, repeats)
            history.add(confirmed(found, nights, threshold, repeats))
            nights = history.nights()
        verdict = judge(nights, name, threshold)
        write_whole(out / PAGE, page(verdict).encode())
    return verdict
