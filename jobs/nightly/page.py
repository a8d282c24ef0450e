"""The page of a night: alarms at the top, the trend of every number, and all answers with the last ones.

Self-contained, without scripts; a function of the history, the night and the threshold.
"""

import json
from itertools import groupby
from pathlib import Path

import numpy as np
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

from ckcv_ray.reports.figures import BLUE, INK, RED, Chart, Mark, Scale, write_svg
from jobs.nightly.figures import Role
from jobs.nightly.verdict import LEAST, Line, Verdict

MAX_NIGHTS = 60
LONGEST = 48


def page(verdict: Verdict) -> str:
    """Render the page as HTML."""
    by_role: dict[Role, list[Line]] = {role: [] for role in Role}
    for line in verdict.lines:
        by_role[line.figure.role].append(line)
    ratios, shown = (
        [(group, [*lines]) for group, lines in groupby(by_role[role], key=lambda line: line.figure.group)]
        for role in (Role.RATIO, Role.SHOWN)
    )
    packages = verdict.night.machine.get("packages", {})
    machine = verdict.night.machine | {"packages": [f"{name} {of}" for name, of in packages.items()]}
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(Path(__file__).parent), PackageLoader("ckcv_ray.reports")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": _shorten,
        "traceback": json.loads,
        "figure": lambda value: "–" if value is None else f"{value:.4g}",
        "pace": pace,
        "limit": limit,
        "sentence": lambda text: f"{text[0].upper()}{text[1:]}.",
    }
    return environment.get_template("page.html").render(
        verdict=verdict,
        night=verdict.night,
        headline=headline(verdict),
        compared=compared(verdict),
        ratios=ratios,
        shown=shown,
        answers=sorted(by_role[Role.EXACT], key=lambda line: not line.alarm),
        failures=[line.figure for line in by_role[Role.FAILED]],
        machine={name: ", ".join(v) if isinstance(v, list) else str(v) for name, v in machine.items()},
        draw=draw_trend,
    )


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


def draw_trend(line: Line) -> str:
    """Draw a figure over the nights as SVG, the median dashed, the limit of alarms in red."""
    least = line.median / (1 + line.threshold) if line.median and line.threshold is not None else None
    nights, values = line.nights[-MAX_NIGHTS:], np.array(line.values[-MAX_NIGHTS:])
    levels = [(level, colour) for level, colour in ((least, RED), (line.median, INK)) if level is not None]
    shown = [*values.tolist(), *(level for level, _ in levels)]
    margin = 0.15 * (max(shown) - min(shown)) or 0.1 * abs(shown[0]) or 1.0
    x = np.arange(len(values))
    parts = [Mark([-0.6, len(x) - 0.4], level, colour, width=0.8, dash=(4, 2)) for level, colour in levels]
    parts.append(Mark(x, values, BLUE, width=1.2, shape="o", size=3))
    parts.append(Mark(x[-1:], values[-1:], RED if line.alarm else BLUE, shape="o", size=7))
    median = f", median before {line.median:.4g}" if line.median is not None else ""
    label = f"{line.figure.label}: {values[-1]:.4g} in night {nights[-1]}{median}; {len(nights)} nights"
    y = Scale("", min(shown) - margin, max(shown) + margin)
    return write_svg(Chart(Scale(names=nights), y, parts, 140), label)


def _shorten(text: str | None) -> str:
    """Shorten a value written as JSON for display."""
    if text is None:
        return "–"
    shown = text.strip('"')
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
