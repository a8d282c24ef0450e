"""The options of a study on the command line and in TOML files: those of its parts, each with its help."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import NOT_INSTALLED, Command

from ckcv_ray import InputError, Study
from ckcv_ray.cli import main as cli
from ckcv_ray.cli import run as command_run
from ckcv_ray.cli.options import list_offered, make_study
from ckcv_ray.core.options import Option, list_names, options
from ckcv_ray.study.study import FIELD_NAMES, SLOTS, format_toml, list_parts

OTHER = {  # of every option a value that is not its default, as a word of the command line
    "class_weight": "ill=2,well=3",
    "C": "1,10", "gamma": "log:-1:1:3", "scale": "none", "k": "3:5", "n_splits": "7", "delta": "0.1",
    "holdout_share": "0.25",
    "claim": "vote,refit", "seed": "5",
    "holdout_bound": "stevens", "holdout_where": "age>=2",
    "report_k": "3,4", "exhaustive": "true",
    "positive": "sick", "param": "C=0.5,2", "sample": "2",
    "encode": "ordinal", "fill": "mean", "rare": "0.05", "balance": "down",
    "effort": "5000",
    "require": "sensitivity>=0.9", "accept": "error<=0.1", "subgroups": "sex,age:3", "answer": "error<=0.2",
    "clip": "2.5",
}  # fmt: skip
TEN = ("target", "features", "drop", "group", "certify", "budget", "learner", "out", "details", "json")
# Options that are refused without another.
NEEDED = {"positive": ("claim", "sensitivity")}
# What is shown of their default is no value.
IN_WORDS = {"positive", "param", "effort"}
# Other tests may have registered learners of their own.
PARTS = {
    slot: {name: part for name, part in list_offered(slot).items() if part.__module__.startswith("ckcv_ray.")}
    for slot in SLOTS
}
OWNERS = [*((slot, name) for slot, choices in PARTS.items() for name in choices), ("", "")]


def owned(slot: str, name: str) -> dict[str, Option]:
    """The options of a named part; without a name, those of the study itself."""
    declared = options(PARTS[slot][name]) if slot else options(Study)
    found = {field: one.metadata["option"] for field, one in declared.items()}
    return {field: option for field, option in found.items() if not option.inside}


def dashed(name: str) -> str:
    return name.replace("_", "-")


CHOSEN = {name: owner for owner in reversed(OWNERS) for name in owned(*owner)}  # the first part that has it


def declared(name: str) -> Option:
    return owned(*CHOSEN[name])[name]


def convert(name: str) -> Any:
    """The other value of an option, a word of the command line, as the value that it stands for."""
    kind = declared(name).kind
    return [OTHER[name]] if kind == list[str] else kind(OTHER[name])


Studied = Callable[..., Study]


@pytest.fixture
def studied(ckcv: Command, patients: Path, monkeypatch: pytest.MonkeyPatch) -> Studied:
    """The study that words of the command line make."""

    def call(*words: object) -> Study:
        seen: list[Study] = []

        def take(study: Study, task: object) -> None:
            seen.append(study)
            raise InputError("seen")

        with monkeypatch.context() as patch:
            patch.setattr(command_run.Problem, "of", take)
            _, _, messages = ckcv("plan", patients, "--target", "outcome", *words)
        assert messages == "ckcv: seen\n"
        return seen[0]

    return call


@pytest.fixture(params=["run", "plan"])
def parameters(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of a command by name."""
    command = cli.load_command(request.param)
    return {p.name: p for p in command.params if p.param_type_name == "option"}


def test_every_option_of_every_part_is_on_the_command_line(parameters: dict[str, Any]) -> None:
    for name in OTHER:
        on_line = parameters[name]
        assert (on_line.opts, on_line.secondary_opts, on_line.default) == ([f"--{dashed(name)}"], [], None)
        assert on_line.is_flag == (declared(name).kind is bool)


@pytest.mark.parametrize("command", ["run", "plan", "evaluate"])
def test_help_begins_with_what_is_used_most_and_keeps_learners_apart(
    command: str, ckcv: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    _, shown, _ = ckcv(command, "--help-all")
    panels: dict[str, list[str]] = {}
    for line in shown.splitlines():
        if line.startswith("╭"):
            names = panels.setdefault(line.strip("╭╮─ "), [])
        elif line.startswith("│ --"):
            names.append(line.split()[1])
    assert panels["Options"][:4] == ["--target", "--features", "--drop", "--group"]
    assert panels["SVM"] == ["--C", "--gamma", "--scale"]
    assert panels["Other learners"] == ["--param", "--sample"]
    if command == "run":
        _, first, _ = ckcv(command, "--help")
        assert re.findall("│ --([a-z-]+)", first) == [*TEN, "help", "help-all"]
    assert "<bool>" not in shown
    assert "[default: (" not in shown
    assert len(shown.splitlines()) < 150


@pytest.mark.parametrize("owner", OWNERS, ids=" ".join)
def test_the_defaults_shown_are_the_defaults(owner: tuple[str, str]) -> None:
    slot, part_name = owner
    if part_name in NOT_INSTALLED:
        pytest.skip(f"{part_name} is not installed")
    part = Study.of(**{slot: part_name}).parts[slot] if slot else Study.of()
    for name, option in owned(*owner).items():
        if option.default_text is not None and name not in IN_WORDS:  # elsewhere it is made of the default
            assert option.check(name, option.kind(option.default_text)) == getattr(part, name)


def test_an_option_of_several_parts_is_one_option() -> None:
    """The command line has it once. Only what can be claimed depends on the part."""
    found: dict[str, Option] = {}
    for owner in OWNERS:
        for name, option in owned(*owner).items():
            known = found.setdefault(name, option)
            assert known is option or (name == "claim" and known.panel == option.panel)
            assert known.kind is option.kind
    assert set(found) == set(OTHER)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("--param", "tolerance=0.01"), {"param": {"tolerance": 0.01}}),
        (("--search", "budget:keep=0.5,survivors=3"), {"search": "budget:survivors=3,keep=0.5"}),
        (("--criterion", "cost:sick=10,healthy=1"), {"criterion": "cost:healthy=1,sick=10"}),
        (("--require", "ppv:0.02:0.3"), {"require": "ppv:0.02>=0.3"}),
    ],
)
def test_what_one_part_alone_knows_is_said_inside_an_option(
    words: tuple[str, ...], asked: dict[str, Any], studied: Studied, tmp_path: Path
) -> None:
    study = Study.of(**asked)
    assert studied(*words) == study != Study.of()
    (tmp_path / "study.toml").write_text(format_toml(study))
    assert studied("--study", tmp_path / "study.toml") == study


@pytest.mark.parametrize("name", OTHER)
def test_every_option_is_heard_on_the_command_line_and_in_a_file(
    name: str, studied: Studied, tmp_path: Path
) -> None:
    slot, part = CHOSEN[name]
    default = (PARTS[slot][part] if slot else Study)()
    expected = declared(name).check(name, convert(name))
    assert expected != getattr(default, name)
    choice = [f"--{slot}", part] if slot and part != next(iter(SLOTS[slot])) else []
    needed, value = NEEDED.get(name, ("", ""))
    word = [] if declared(name).kind is bool else [OTHER[name]]
    study = studied(f"--{dashed(name)}", *word, *choice, *([f"--{needed}", value] if needed else []))
    assert study.options()[name] == expected
    for written in {name, dashed(name)}:
        lines = [f"{written} = {json.dumps(convert(name))}", *([f'{slot} = "{part}"'] if slot else [])]
        lines += [f'{needed} = "{value}"'] if needed else []
        (tmp_path / "study.toml").write_text("\n".join(lines))
        assert studied("--study", tmp_path / "study.toml") == study
    (tmp_path / "study.toml").write_text(format_toml(study))
    assert studied("--study", tmp_path / "study.toml") == study
    if slot:
        assert getattr(study, FIELD_NAMES.get(slot, slot)).name == part


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n-splits = 3\nn_splits = 4\n", "two of n-splits, n_splits are the same option"),
        ("paper = 1\n", r"study.toml': paper=1 is not true or false"),
        ("out = 1", "unknown option 'out' of a study"),
        ("N-SPLITS = 1", "unknown option 'N_SPLITS' of a study"),
    ],
)
def test_a_study_file_takes_the_names_of_the_command_line_and_no_others(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(InputError, match=message) as messages:
        make_study(study=tmp_path / "study.toml")
    if message.startswith("unknown"):
        known = str(messages.value).partition("the options are ")[2].partition(";")[0].split(", ")
        own = {name for part in list_parts("learner").values() for name in list_names(part)}
        assert sorted(known) == sorted({*OTHER, *SLOTS, *own})


def test_a_study_file_gives_way_to_options(studied: Studied, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('C = "log:-1:1:3"\ngamma = [0.1, 1]\nk = [3, 4]\nn_splits = 3\n')
    study = studied("--study", tmp_path / "study.toml", "--n-splits", 2)
    options = {"C": (0.1, 1.0, 10.0), "gamma": (0.1, 1.0), "k": (3, 4), "n_splits": 2}
    assert study == Study.of(**options)
    assert studied("--study", tmp_path / "study.toml", "--n-splits", 2, "--paper") == Study.paper(**options)


def test_paper_gives_the_defaults_of_the_published_algorithm_and_other_options_go_before(
    studied: Studied, tmp_path: Path
) -> None:
    assert studied("--paper") == Study.paper() == Study()
    assert studied() == Study.of() != Study.paper()
    held = studied("--paper", "--certify", "holdout", "--k", "auto")
    assert held == Study.paper(certify="holdout", k="auto")
    (tmp_path / "study.toml").write_text("paper = true\nseed = 4\n")
    assert studied("--study", tmp_path / "study.toml") == Study.paper(seed=4)


def test_plan_writes_a_study_file_and_replaces_none(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    words = ("plan", patients, "--target", "outcome", "--k", "3,4", "--write-study", file)
    assert ckcv(*words)[0] == 0
    assert make_study(study=file) == Study.of(k=(3, 4))
    file.write_text("seed = 3\n")
    code, _, messages = ckcv(*words)
    assert (code, f"ckcv: --write-study {str(file)!r} exists: name another file" in messages) == (2, True)
    assert file.read_text() == "seed = 3\n"
