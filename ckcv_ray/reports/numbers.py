"""What a summary and a page show of a study with a certification that predicts numbers."""

from typing import Any

from ckcv_ray.claims.baseline import describe_error, name_constant
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.claim import Claim, limit
from ckcv_ray.claims.percent import format_level, format_number, round_bound
from ckcv_ray.study import Candidate, Holdout, parse_clipped, parse_within


def list_figures(c: Certificate) -> list[tuple[str, str]]:
    """Return what was selected, measured and minimised, by name; all errors are in units of the target."""
    winner, sample, counts = c.winner, c.sample, c.counts
    assert sample.numbers is not None
    clip, level = sample.numbers["clip"], format_level(winner.delta)
    shown = format_number(clip)
    bounds = f"mean error, of which at most {shown} counts, with a {level} margin"
    units, groups = "rows" if sample.groups is None else "groups", sample.groups
    of_groups = "" if groups is None else f" of {groups['held']:,} groups"
    held = f"{sample.n_held:,} rows{of_groups}, not used before the end" if sample.n_held else "none"
    return [
        ("best", str(Candidate(winner.setting, winner.k))),
        ("selected by", f"{round_bound(clip * winner.l_ms)}, {bounds}, on the select sets (minimised)"),
        ("estimated", f"{round_bound(clip * winner.l_ee)}, the same on the estimate sets; no bound"),
        (
            "mean error",
            f"{format_number(clip * counts.error)} on the estimate sets (an estimate, not a bound)",
        ),
        *(
            (
                "baseline",
                f"{describe_error(baseline)} by {name_constant(baseline, ())} on the {baseline['on']}",
            )
            for baseline in sample.baselines
        ),
        ("held out", held),
        (
            "splits",
            f"{winner.n_splits:,}, each of {winner.n_train:,} {units} to train, {winner.n_select:,} to "
            f"select, {winner.n_select:,} to estimate",
        ),
    ]


def describe_errors(c: Certificate) -> dict[str, Any]:
    """Return what the page shows of such a study."""
    known = {claim["statement"] for claim in c.claims} | {*c.list_cautions()}
    return {
        "certificate": c,
        "figures": list_figures(c),
        "claims": [(claim, c.sample.baseline) for claim in c.claims],
        "remarks": [sentence for sentence in c.wording.statements if sentence not in known],
    }


def describe_verdict(claim: Claim, grouped: bool) -> str:
    """Say what a claim about numbers proves, in a few words; of the rows of a new group if ``grouped``."""
    level, width = format_level(claim["delta"]), limit(claim)
    if (share := parse_within(claim["quantity"])) is not None:
        return (
            f"{format_number(100 * share)} % of new rows are off by at most {width}, with probability {level}"
        )
    clip = format_number(parse_clipped(claim["quantity"]) or 0.0)
    return (
        f"{'the rows of a new group' if grouped else 'new rows'} are off by at most {width} on average "
        f"(above {clip} counts as {clip}), with probability {level}"
    )


def describe_measured(c: Certificate) -> str:
    """Say how far off numbers were that the first claim is about."""
    first, numbers = c.claims.first, c.sample.numbers
    assert numbers is not None
    of_held = first["certification"] == Holdout.name
    on = f"{c.sample.n_held:,} held-out rows" if of_held else "scored rows"
    mean = "" if c.sample.groups is None else ", mean over groups"
    if first["errors"] is not None:
        return f"{first['errors']:,} of {on} are further off"
    return f"off by {format_number(numbers['clip'] * measure_error(c))} on average ({on}{mean})"


def measure_error(c: Certificate) -> float:
    """Return the mean error that was measured of what the first claim is about, as a share of the clip."""
    return c.claims.first.get("measured", c.counts.error)
