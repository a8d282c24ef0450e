"""One night: measure it, repeat suspect figures, add it to the history, judge it, and write its page."""

import sys
from datetime import UTC, datetime

from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import Files
from ckcv_ray.tables import named as data
from ckcv_ray.version import VERSION
from jobs.nightly.figures import PLANS, measure, recount
from jobs.nightly.history import PAGE, History, Night, machine
from jobs.nightly.page import page
from jobs.nightly.verdict import Verdict, judge, suspects

LONGER = 3


def find_night(history: list[Night], night: str, groups: list[str], plan: str | None) -> tuple[bool, str]:
    """Check whether this night already exists, and choose the plan.

    Raises:
        InputError: the night exists without some of the groups, or the history has another plan.
    """
    chosen = history[-1].plan if history else plan or "generators"
    if chosen != (plan or chosen):
        raise InputError(f"plan={plan!r}: this history has the plan {chosen!r}; choose another --out")
    if chosen not in PLANS:
        raise InputError(f"plan={chosen!r}: choose from {', '.join(PLANS)}")
    existing = next((one for one in history if one.name == night), None)
    if existing is not None and (missing := [group for group in groups if group not in existing.groups()]):
        raise InputError(f"night {night!r} exists without {', '.join(missing)}: choose another --night")
    return existing is not None, chosen


def measure_night(night: str, commit: str, plan: str, groups: list[str], repeats: int) -> Night:
    """Measure a night now."""
    for source in PLANS[plan].sources():
        data.read(source)  # reports a missing archive before an hour of work
    began, here = datetime.now(UTC), machine()
    return Night(night, began, commit, VERSION, plan, here, tuple(measure(PLANS[plan], groups, repeats)))


def confirm(night: Night, nights: list[Night], threshold: float, repeats: int) -> Night:
    """Measure suspect figures again, for longer, before they raise an alarm."""
    suspected = suspects(judge([*nights, night], night.name, threshold))
    if not suspected:
        return night
    longer = LONGER * repeats
    for key in sorted(suspected):
        print(f"suspect: {', '.join(key)}; measuring its group again, repeats: {longer}", file=sys.stderr)
    groups = list(dict.fromkeys(group for group, _, _ in sorted(suspected)))
    again = measure(PLANS[night.plan], groups, longer)
    return night._replace(figures=tuple(recount(night.figures, suspected, again)))


def run_night(
    files: Files,
    name: str,
    threshold: float,
    groups: list[str],
    plan: str | None,
    repeats: int,
    commit: str,
) -> Verdict:
    """Measure a night unless it exists, add it to the history, judge it, and write its page.

    ``files`` are those of a folder on a disk or an object store.
    """
    history = History(files)
    with history.locked():
        nights = history.nights()
        exists, chosen = find_night(nights, name, groups, plan)
        if exists:
            print(f"night {name} already exists: it is not measured again", file=sys.stderr)
        else:
            night = measure_night(name, commit, chosen, groups, repeats)
            history.add(confirm(night, nights, threshold, repeats))
            nights = history.nights()
        verdict = judge(nights, name, threshold)
        files.write(PAGE, page(verdict).encode())
    return verdict
