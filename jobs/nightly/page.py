"""The page of a night: alarms at the top, the trend of every number, and all answers with the last ones.

Self-contained, without scripts; a function of the history, the night and the threshold.
"""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

from jobs.nightly.figures import Role
from jobs.nightly.trend import Trend, draw_trend
from jobs.nightly.verdict import LEAST, Line, Verdict

MAX_NIGHTS = 60
LONGEST = 48


def page(verdict: Verdict) -> str:
    """Render the page as HTML."""
    numbers = [line for line in verdict.lines if line.figure.role in (Role.RATIO, Role.SHOWN) and line.values]
    exact = [line for line in verdict.lines if line.figure.role == Role.EXACT]
    html: str = _template().render(
        verdict=verdict,
        night=verdict.night,
        headline=headline(verdict),
        compared=compared(verdict),
        ratios=_by_case([line for line in numbers if line.figure.role == Role.RATIO]),
        shown=_by_case([line for line in numbers if line.figure.role == Role.SHOWN]),
        answers=sorted(exact, key=lambda line: not line.alarm),
        failures=[line.figure for line in verdict.lines if line.figure.role == Role.FAILED],
        machine=_pairs(verdict.night.machine),
        draw=_drawn,
    )
    return html


def headline(verdict: Verdict) -> str:
    """Summarize the verdict in a few words."""
    alarms = len(verdict.alarms)
    if alarms:
        return f"{alarms} alarm{'s' * (alarms > 1)}"
    if not verdict.compared:
        return "measured; no earlier night to compare with"
    early = sum(line.early for line in verdict.lines)
    if early:
        return f"no answer changed, {early} speeds with too few nights"
    return "no slowdown, no answer changed"


def compared(verdict: Verdict) -> str:
    """Name the nights that the night was compared with."""
    names = verdict.compared
    if not names:
        return "compared with no other night"
    which = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    nights = f"{len(names)} night{'s' * (len(names) > 1)}"
    return f"speeds compared with the median of {nights} ({which}), answers with night {names[-1]}"


def pace(change: float | None) -> str:
    """Format a change of time."""
    if change is None:
        return "–"
    return f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}"


def limit(line: Line) -> str:
    """Format the threshold of an alarm."""
    if line.threshold is None:
        return f"too few nights: {line.before} of {LEAST}"
    return f"alarm above {line.threshold:.1%}"


def _drawn(line: Line) -> str:
    least = line.median / (1 + line.threshold) if line.median and line.threshold is not None else None
    nights, values = line.nights[-MAX_NIGHTS:], line.values[-MAX_NIGHTS:]
    median = f", median before {line.median:.4g}" if line.median is not None else ""
    label = f"{line.figure.label}: {values[-1]:.4g} in night {nights[-1]}{median}; {len(nights)} nights"
    return draw_trend(Trend(nights, values, line.median, least, bool(line.alarm)), label)


def _by_case(lines: list[Line]) -> list[tuple[str, list[Line]]]:
    return [(group, list(members)) for group, members in groupby(lines, key=lambda line: line.figure.group)]


def _pairs(machine: dict[str, Any]) -> list[tuple[str, str]]:
    packages = ", ".join(f"{name} {version}" for name, version in machine.get("packages", {}).items())
    values = {**machine, "packages": packages}
    return [(name, ", ".join(v) if isinstance(v, list) else str(v)) for name, v in values.items()]


def _short(text: str | None) -> str:
    """Shorten a value written as JSON for display."""
    if text is None:
        return "–"
    shown = text.strip('"')
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def _template() -> Any:
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(Path(__file__).parent), PackageLoader("ckcv_ray.reports")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = _short
    environment.filters["traceback"] = json.loads
    environment.filters["figure"] = lambda value: "–" if value is None else f"{value:.4g}"
    environment.filters["pace"] = pace
    environment.filters["limit"] = limit
    environment.filters["sentence"] = lambda text: f"{text[0].upper()}{text[1:]}."
    return environment.get_template("page.html")
