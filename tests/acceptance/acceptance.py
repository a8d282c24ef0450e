"""What users see in the acceptance cases: compared with what is recorded, or recorded again.

    jobs/acceptance               compare all cases
    jobs/acceptance groups        compare those whose names begin with this
    jobs/acceptance --record      write recorded.json, and print what has changed

For each line, the exit code and what is printed are recorded, without times; for each run folder that it
leaves, the claims, sentences, scores, winner and identity; and once for all: options, public names and files.
Figures are compared in every bit on the machine that recorded them, elsewhere to nine digits; an absent field
counts as null. A sentence is written once: a statement that is a claim's is given by the claim's place, and a
list that runs have in common by its digest.
"""

import hashlib
import inspect
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from calls import CALLS
from cases import CASES
from pyarrow import parquet
from tables import write_table

import ckcv_ray
from ckcv_ray import extend
from ckcv_ray.cli import main as cli
from ckcv_ray.learners.simple import Ridge
from ckcv_ray.storage import execution

FLOAT = re.compile(r"(-?\d+\.\d+(?:e[-+]\d+)?)")
FILE = Path(__file__).with_name("recorded.json")
PRINTED = 25  # lines of a screen, and rows of predictions
TIMES = re.compile(r"\b[\d.,]+ ?(ms|s|min|minutes?|seconds?|h|hours?|KiB|MiB|GiB)\b(?! ago)")
BY_ARRIVAL = re.compile(
    r"estimated time|evaluations? |/s \||^fits |^to (verify|run again)"
)  # differs from run to run
OF_A_RUN = re.compile(r"/tmp/\S+|\b20\d\d-\d\d-\d\d\d\d:\d\d\S*")
CONTINUED = re.compile(r"\n +--")  # a line that begins with an option belongs to the one before
CLAIM = (
    *("quantity", "label", "certification", "classifier", "bound", "errors", "rows", "delta", "statement"),
    *("cut_off", "least_confidence", "measured", "gate"),
)
SHARED = ("assumptions", "not_covered")  # lists of sentences, nearly the same in all runs
OF_CERTIFICATE = (
    *("run_id", "salt", "setting", "k", "l_ms", "l_ee", "error", "labels", "class_rows", "repeats"),
    *("bound_without_copies", "baselines", "by_class", "subgroups", "statements", *SHARED),
)
WIDE = {"COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}

Observed = dict[str, Any]


def observe(name: str) -> Observed:
    """Run the lines of a case in a separate folder, and return what is seen of it."""
    lines = list_lines(name)
    with TemporaryDirectory(prefix="ckcv-") as folder, _standing_in(Path(folder)):
        write_tables(lines)
        seen = {f"{i + 1}: {line}": _run(line) for i, line in enumerate(lines)}
        return seen | {
            str(study.parent): _read_folder(study.parent) for study in sorted(Path().glob("*/study.json"))
        }


def make_folders(name: str, folder: Path) -> None:
    """Run, in a folder, the lines of a case that make run folders, with their tables beside them."""
    lines = [line for line in list_lines(name) if line.startswith(("run ", "evaluate "))]
    with _standing_in(folder):
        write_tables(lines)
        for line in lines:
            _run(line)


def list_lines(name: str) -> list[str]:
    """Return the lines of a case."""
    return [line.strip() for line in CONTINUED.sub(" --", CASES[name]).strip().splitlines()]


def write_tables(lines: list[str]) -> None:
    """Write the tables that lines name, and the one that calls read, in the working directory."""
    for word in {word for line in lines for word in [*line.split(), "tumours.csv"]}:
        if word.endswith((".csv", ".tsv", ".parquet")):
            write_table(word, Path())


@contextmanager
def _standing_in(folder: Path) -> Iterator[None]:
    before, variables = Path.cwd(), os.environ.copy()
    os.chdir(folder)
    os.environ.update(WIDE)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)


def _run(line: str) -> Any:
    command, *words = shlex.split(line.replace(">", "\\>").replace("<", "\\<"))
    if command == "python":
        return CALLS[words[0]]()
    code, shown = _call(command, *words)
    if "--json" in words:
        return {"exit": code, "keys": sorted(json.JSONDecoder().raw_decode(shown, shown.index("{"))[0])}
    said = (text.rstrip() for text in shown.splitlines() if not BY_ARRIVAL.search(text))
    lines = [OF_A_RUN.sub("...", TIMES.sub("<time>", text)) for text in said]
    return {"exit": code, "shown": lines[:PRINTED]}


def _call(*words: str) -> tuple[int, str]:
    """Run a command in this process; return its exit code, and what it prints on both streams."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    streams, arguments = (sys.stdout, sys.stderr), sys.argv
    with TemporaryFile("w+") as printed:
        try:
            for descriptor in kept:
                os.dup2(printed.fileno(), descriptor)
            sys.stdout, sys.stderr = (os.fdopen(os.dup(i), "w", buffering=1) for i in kept)
            sys.argv = ["ckcv", *words]
            code = 0
            try:
                cli.main()
            except SystemExit as end:
                code = int(end.code or 0)
        finally:
            sys.stdout.close()
            sys.stderr.close()
            (sys.stdout, sys.stderr), sys.argv = streams, arguments
            for descriptor, copy in kept.items():
                os.dup2(copy, descriptor)
                os.close(copy)
        printed.seek(0)
        return code, printed.read()


def _read_folder(folder: Path) -> Observed:
    """Return what a run folder says: for a certified run its claims, for an evaluation its scores."""
    seen: Observed = {"files": sorted(path.name for path in folder.iterdir() if path.name != "log")}
    if (file := folder / "certificate.json").exists():
        content = json.loads(file.read_text())
        seen |= _pick(content, OF_CERTIFICATE)
        seen["data"] = content["digests"]["data"]
        seen["claims"] = [_pick(claim, CLAIM) for claim in content["claims"]]
        of_claims = {claim["statement"]: f"claims[{i}]" for i, claim in enumerate(seen["claims"])}
        seen["statements"] = [of_claims.get(statement, statement) for statement in seen["statements"]]
    elif (file := folder / "scores.json").exists():
        content = json.loads(file.read_text())
        seen |= {"run_id": content["run_id"], "entries": content["entries"]}
    if (file := folder / "predictions.parquet").exists():
        seen["predictions"] = [str(row) for row in parquet.read_table(file).slice(0, PRINTED).to_pylist()]
    return seen


def _pick(content: Observed, names: tuple[str, ...]) -> Observed:
    return {name: content[name] for name in names if content.get(name) is not None}


def observe_outside() -> Observed:
    """Return options by command, and public names with their signatures."""
    import typer

    command: Any = typer.main.get_command(cli.app)
    options = {
        name: sorted(option for parameter in cli.load_command(name).params for option in parameter.opts)
        for name in sorted(command.commands)
    }
    return {
        "options": options,
        "names": {name: _describe(ckcv_ray, name) for name in ckcv_ray.__all__},
        "extend": {name: _describe(extend, name) for name in sorted(vars(extend)) if name[0].isalpha()},
    }


def _describe(module: Any, name: str) -> str:
    """Return the signature of a public name, without types; for a value, its type."""
    value = getattr(module, name)
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return type(value).__name__
    plain = (bool, int, float, str, tuple, type(None))
    given = ((p, p.default if isinstance(p.default, plain) else ...) for p in parameters)
    return ", ".join(p.name if p.default is p.empty else f"{p.name}={value!r}" for p, value in given)


@cache
def find_environment() -> dict[str, str]:
    """Return what may change a bit here: processor, versions, and variables that select other code."""
    return execution.read_environment(Ridge())


@cache
def read_recorded() -> dict[str, Any]:
    """Read what is recorded: for each case, for the outside, and the environment."""
    content: dict[str, Any] = json.loads(FILE.read_text())
    lists = content.pop("lists")
    for seen, name in _find_shared(content["cases"]):
        seen[name] = lists[seen[name]]
    return content


def write_recorded(content: dict[str, Any]) -> None:
    """Write what ``read_recorded`` returns, each list of ``SHARED`` once."""
    cases, lists = json.loads(json.dumps(content["cases"])), {}
    for seen, name in _find_shared(cases):
        digest = hashlib.sha256(json.dumps(seen[name]).encode()).hexdigest()[:12]
        lists[digest], seen[name] = seen[name], digest
    written = content | {"cases": cases, "lists": dict(sorted(lists.items()))}
    FILE.write_text(json.dumps(written, indent=0, ensure_ascii=False) + "\n")


def _find_shared(cases: dict[str, Observed]) -> Iterator[tuple[Observed, str]]:
    for case in cases.values():
        for seen in case.values():
            if isinstance(seen, dict):
                yield from ((seen, name) for name in SHARED if name in seen)


def compare(before: Any, now: Any, exact: bool, place: str = "") -> Iterator[str]:
    """Yield a line for each value that has changed: where it is, what it was and what it is now."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before | now:
            yield from compare(before.get(key), now.get(key), exact, f"{place}: {key}" if place else key)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            of = f" {old['quantity']}" if isinstance(old, dict) and "quantity" in old else ""
            yield from compare(old, new, exact, f"{place}[{i}{of}]")
    elif not (before == now or (not exact and _are_close(before, now))):
        if isinstance(before, list) and isinstance(now, list):
            place = f"{place}: {len(before)} -> {len(now)}"
            before, now = [v for v in before if v not in now], [v for v in now if v not in before]
        yield f"{place}\n   was {json.dumps(before)}\n   now {json.dumps(now)}"


def _are_close(before: Any, now: Any) -> bool:
    """Return whether floats, or texts with floats in them, differ only by rounding."""
    if isinstance(before, str) and isinstance(now, str):
        old, new = FLOAT.split(before), FLOAT.split(now)  # words and floats by turns
        return old[::2] == new[::2] and all(map(_are_close, map(float, old[1::2]), map(float, new[1::2])))
    return isinstance(before, float) and isinstance(now, float) and isclose(before, now, rel_tol=1e-9)


def main(words: list[str]) -> int:
    """Compare, or record; return 1 where something differs from what is recorded."""
    record = "--record" in words
    begin = " ".join(word for word in words if word != "--record")
    chosen = [name for name in CASES if name.startswith(begin)]
    kept = read_recorded() if FILE.exists() else {"cases": {}, "outside": {}}
    now = {
        "environment": find_environment(),
        "outside": observe_outside(),
        "cases": {name: observe(name) for name in chosen},
    }
    exact = record or kept.get("environment") == now["environment"]
    of_chosen = kept | {"cases": {name: kept["cases"].get(name) for name in chosen}}
    changed = list(compare(of_chosen, json.loads(json.dumps(now)), exact))
    print(*changed, f"{len(chosen)} cases: {len(changed)} values differ", sep="\n")
    if record:
        now["cases"] = {name: (kept["cases"] | now["cases"])[name] for name in CASES}
        write_recorded(now)
    return int(bool(changed) and not record)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))  # for the double of an object store
    sys.exit(main(sys.argv[1:]))
