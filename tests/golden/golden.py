"""Values that must not change: compare with the recorded ones, or record them.

studies       winners, bounds, claims, predictions, models and files of small studies
procedures    scores, settings, records and files of small procedures of cross validation
identities    JSON text and run_id of studies and procedures
splits        more than ten thousand splits, a digest for each kind
data_sets     digests of the IDA sets and of the gallery's tables as tasks

Values whose keys begin with "bits of" are compared only on the same kind of processor with the same versions.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from exact import BITS, Values

FILE = Path(__file__).with_name("values.json")
SECTIONS = ("studies", "procedures", "identities", "splits", "data_sets")
FAILED = "cannot be observed"
SHOWN = 100  # characters of a value in a message
Sections = dict[str, dict[str, Values]]


def observe_all() -> Sections:
    """Observe every section; the value of what raises an error is that error."""
    return {section: dict(_observe_section(section)) for section in SECTIONS}


def _observe_section(section: str) -> Iterator[tuple[str, Values]]:
    try:
        module = import_module(section)
    except Exception as error:  # of any kind, by code that has moved
        yield "all of them", {FAILED: f"{type(error).__name__}: {error}"}
        return
    for name in module.NAMES:
        if is_missing(name):
            continue
        try:
            yield name, module.observe(name)
        except Exception as error:
            yield name, {FAILED: f"{type(error).__name__}: {error}"}


def is_missing(name: str) -> bool:
    """Return whether a value needs the IDA archive, which CKCV_IDA does not name here."""
    return name.startswith("ida:") and not os.environ.get("CKCV_IDA", "").endswith(".npz")


def compare(section: str, name: str, before: Values, now: Values, exact: bool) -> list[str]:
    """Describe each changed value in a line."""
    keys = [key for key in before | now if exact or not key.startswith(BITS)]
    changed = [key for key in keys if key == FAILED or before.get(key) != now.get(key)]
    return [f"{section}: {name}: {key} {_describe(before.get(key), now.get(key))}" for key in changed]


def _describe(before: Any, now: Any) -> str:
    texts = [json.dumps(value, ensure_ascii=False) for value in (before, now)]
    same = next((i for i, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), 0)
    first = max(0, same - SHOWN // 2) if max(map(len, texts)) > SHOWN else 0
    was, is_now = ("..." * (first > 0) + text[first : first + SHOWN] for text in texts)
    return f"was {was}, now it is {is_now}"


def compare_all(before: Sections, now: Sections, exact: bool) -> list[str]:
    """Describe each changed value of all sections in a line."""
    return [
        line
        for section in before | now
        for name in before.get(section, {}) | now.get(section, {})
        if not is_missing(name)
        for line in compare(
            section, name, before.get(section, {}).get(name, {}), now.get(section, {}).get(name, {}), exact
        )
    ]


@cache
def read() -> dict[str, Any]:
    """Read the recorded values by section, and the environment in which they were computed."""
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


def record(observed: Sections) -> int:
    """Write the recorded values, a line for each, unless some are missing; return the exit code."""
    lacking = compare_all(observed, observed, exact=True)
    lacking += ["CKCV_IDA has to name the IDA archive"] if is_missing("ida:banana:1") else []
    if lacking:
        print("\n".join(lacking))
        return 1
    FILE.write_text(_lines({"environment": environment(), **observed}, depth=3) + "\n")
    return 0


def _lines(content: Any, depth: int, indent: str = "") -> str:
    if not (depth and content and isinstance(content, dict)):
        return json.dumps(content, ensure_ascii=False)
    inner = indent + " "
    parts = [f"{inner}{json.dumps(key)}: {_lines(part, depth - 1, inner)}" for key, part in content.items()]
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"


@cache
def environment() -> dict[str, Any]:
    """Return what may change bits here: processor, versions, BLAS, and variables that select other code."""
    from samples import lattice

    from ckcv_ray import Execution, Study, run

    X, y, _ = lattice(12)
    study = Study.paper(learner="constant", k=(3,), n_splits=1)
    tiny = run(study, X, y, execution=Execution("serial"))
    found = tiny.execution["environment"].items()
    return {name: text for name, text in found if not name.startswith("learner.")}


def is_exact() -> bool:
    """Return whether this environment is the one in which the values were recorded."""
    return bool(read()["environment"] == environment())


def main() -> int:
    """Return exit code 0 if nothing has changed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="record the values of the present code")
    options, observed = parser.parse_args(), observe_all()
    if options.record:
        return record(observed)
    exact = is_exact()
    wrong = compare_all({name: read()[name] for name in SECTIONS}, observed, exact)
    counts = ", ".join(f"{section} {len(of)}" for section, of in observed.items())
    how = "in every bit" if exact else "but for bits, of another processor or other versions"
    archive = "; without the IDA sets" if is_missing("ida:banana:1") else ""
    print("\n".join(wrong) or f"{counts}: equal {how}{archive}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
