"""Figures and facts that stand in several places agree with their one source.

Each ``Fact`` has the words it is told with, wherever they appear: in the README, documentation, docstrings,
help and jobs. Its value comes from the code, or from the results page that a command made. A place that says
something else fails, and so does a fact whose words appear nowhere.
"""

import gzip
import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import pytest

from ckcv_ray import Study
from ckcv_ray.core.resampling.complete import MIN_K
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.study.parts import MAX_HALVED_ROWS, MIN_HELD_OUT
from ckcv_ray.tables.columns import MAX_CLASSES, MAX_TABLE_BYTES
from ckcv_ray.tables.read import LINE_BYTES, MAX_CELLS, MAX_TABLE_COLUMNS, MAX_TABLE_ROWS

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("README.md", "docs", "ckcv_ray", "jobs", "docker")
KINDS = {".md", ".py", ".html", ".sh", ""}
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Fact(NamedTuple):
    """Something that is told in several places."""

    name: str
    words: str  # how it is told, with a group for each value; a space is any white space
    value: Callable[[], tuple[str, ...]]  # what each group has to be


def page(name: str) -> str:
    return (ROOT / "docs" / "results" / f"{name}.md").read_text()


@cache
def texts() -> dict[str, str]:
    """The text of every place, without the marks of comments and of bold type, by its path."""
    found = {}
    for place in map(ROOT.joinpath, PLACES):
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.is_file() and file.suffix in KINDS and "__pycache__" not in file.parts:
                text = re.sub(r"(?m)^[ \t]*#(?!#)", " ", file.read_text())
                text = re.sub(r"\*\*|\s+|\"\s+f?\"", " ", text)
                found[str(file.relative_to(ROOT))] = re.sub(r" +", " ", text)
    return found


def column(text: str, pattern: str) -> list[float]:
    return [float(value.replace(",", "")) for value in re.findall(pattern, text)]


def ratio(pattern: str) -> Callable[[], tuple[str]]:
    """A ratio of speeds, without its decimals."""
    return lambda: (f"{column(page('speed'), pattern)[0]:.0f}",)


def learning_sets() -> tuple[str]:
    with gzip.open(ROOT / "docs" / "results" / "coverage_runs.jsonl.gz", "rt") as lines:
        return (f"{sum(1 for _ in lines):,}",)


def range_of_paper() -> tuple[str, str]:
    """The range of the means of paper and L_EE, in each line of generated data with 200 and 400 rows."""
    means = page("coverage").split("Mean bound in %")[2]
    lines = re.findall(r"(?m)^[a-z]+:[24]00 +([\d.]+) \([\d.]+\) +([\d.]+) ", means)
    assert len(lines) == 8
    ratios = [float(paper) / float(l_ee) for l_ee, paper in lines]
    return f"{min(ratios):.2f}"[:-1], f"{max(ratios):.1f}"


def failures_of_l_ee() -> tuple[str, str]:
    (failed, runs) = re.findall(r"below the truth in (\d+) of ([\d,]+) runs", page("coverage"))[0]
    return runs, WORDS[int(failed)]


def searches() -> tuple[str, str]:
    ratios = column(page("speed"), r"one process +[\d.]+ s, ours +[\d.]+ s +([\d.]+) x \| loky .*whole run")
    assert len(ratios) == 10
    return f"{min(ratios):.1f}", f"{max(ratios):.0f}"


def means_of_searches() -> tuple[str, ...]:
    """Geometric means of the ratios in one process, and on Ray."""
    ours = r"[\d.]+ s +([\d.]+) x"
    pairs = re.findall(rf"one process .*, ours +{ours} \| .*ours on Ray +{ours}, whole", page("speed"))
    assert len(pairs) == 10
    return tuple(f"{geometric_mean(map(float, ratios)):.1f}" for ratios in zip(*pairs, strict=True))


def studies(pattern: str, shape: str) -> Callable[[], tuple[str, str]]:
    """The least and the greatest of a column of the default studies of the paper's sets."""

    def value() -> tuple[str, str]:
        numbers = column(page("speed").split("## Complete studies on Ray")[1], pattern)
        assert len(numbers) == 13
        return format(min(numbers), shape), format(max(numbers), shape)

    return value


def versions() -> tuple[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least, below = re.findall(r"3\.(\d+)", project["requires-python"])
    return least, str(int(below) - 1)


def settings() -> tuple[int, int]:
    svm = Study.paper().learner
    assert isinstance(svm, GaussianSVM)
    return len(svm.C), len(svm.gamma)


def the_check() -> tuple[str]:
    """Its head says how long it takes: change it when the check has become longer or shorter."""
    (minutes,) = re.findall(r"in about (\d+) minutes", texts()["jobs/check"])
    return (minutes,)


FACTS = [
    Fact("fresh learning sets", r"([\d,]+) fresh (?:learning|data) sets", learning_sets),
    Fact("paper against L_EE", r"([\d.]+) to ([\d.]+) times (?:L_EE|as high)", range_of_paper),
    Fact(
        "failures of L_EE",
        r"\[([\d,]+) runs on data whose true error is known\]\S+ it was below the truth (\w+) times",
        failures_of_l_ee,
    ),
    Fact("one fit", r"(\d+) times as fast as scikit-learn's `SVC`", ratio(r"geomean_ratio_svc ([\d.]+)")),
    Fact("grid searches", r"are ([\d.]+) to (\d+) times as fast as with `GridSearchCV`", searches),
    Fact(
        "means of the searches",
        r"(?:geometric means: |the geometric mean is )([\d.]+) in one process(?:,| and) ([\d.]+) on",
        means_of_searches,
    ),
    Fact(
        "seconds of a study",
        r"takes (\d+) to (\d+) seconds on each of the",
        studies(r"rows +([\d.]+) s +planned", ".0f"),
    ),
    Fact(
        "rows of the sets",
        r"\(([\d,]+) to ([\d,]+) rows,",
        studies(r"(?m)^\w+ +(\d+) rows .*planned", ",.0f"),
    ),
    Fact(
        "evaluations of the sets",
        r"rows, ([\d,]+) to ([\d,]+) evaluations",
        studies(r"planned +([\d,]+)", ",.0f"),
    ),
    Fact(
        "Table 1",
        r"took ([\d.]+) minutes",
        lambda: (re.findall(r"table1`\) took ([\d.]+) minutes", page("table1"))[0],),
    ),
    Fact("versions of Python", r"Python 3\.(\d+)(?: to |-)3\.(\d+)", versions),
    Fact(
        "versions that are looked for",
        r"\(3, (\d+)\) <= sys\.version_info < \(3, (\d+)\)",
        lambda: (versions()[0], str(int(versions()[1]) + 1)),
    ),
    Fact(
        "rows of a table",
        r"(?:at most|more than) (\d+) million rows",
        lambda: (str(MAX_TABLE_ROWS // 10**6),),
    ),
    Fact(
        "columns of a table", r"million rows(?:,| and) ([\d,]+) columns", lambda: (f"{MAX_TABLE_COLUMNS:,}",)
    ),
    Fact(
        "cells and bytes",
        r"columns, 2\^(\d+) cells, (\d+) GiB,",
        lambda: (str(MAX_CELLS.bit_length() - 1), str(MAX_TABLE_BYTES >> 30)),
    ),
    Fact("lines", r"lines of (?:more than )?(\d+) MiB", lambda: (str(LINE_BYTES >> 20),)),
    Fact("classes", r"(?:at most|more than) ([\d,]+)(?: classes|; labels)", lambda: (f"{MAX_CLASSES:,}",)),
    Fact(
        "default grids",
        r"(?:default study (?:has |\()|The grid has )(\d+)(?: values of)? \$?C\$?,?(?: and)? (\d+)"
        r"(?: of)? \$?\\?gamma",
        lambda: tuple(map(str, settings())),
    ),
    Fact("pairs", r"(\d+) pairs(?: of C and gamma)?[,.]", lambda: (str(settings()[0] * settings()[1]),)),
    Fact(
        "default k",
        r"every \$?k\$? from (\d+) to (?:\$?n\$?\b|the number of rows)",
        lambda: (str(MIN_K),),
    ),
    Fact(
        "default splits",
        r"to (?:\$?n\$?|the number of rows),(?: and)? (\d+) splits",
        lambda: (str(Study.paper().resampling.n_splits),),
    ),
    Fact("held out by auto", r"`auto` takes half of up to (\d+) rows", lambda: (str(MAX_HALVED_ROWS),)),
    Fact(
        "held out at least",
        r"fewer than (\d+) rows or groups would be held out",
        lambda: (str(MIN_HELD_OUT),),
    ),
    Fact("the check", r"in about (\d+) minutes", the_check),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_what_is_told_in_several_places_agrees_with_its_source(fact: Fact) -> None:
    value = fact.value()
    told = [
        (name, found.groups()) for name, text in texts().items() for found in re.finditer(fact.words, text)
    ]
    assert told
    assert [one for one in told if one[1] != value] == [], value
