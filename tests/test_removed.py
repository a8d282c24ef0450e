"""What was removed is answered with what to write instead, wherever it is still written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

import ckcv_ray
from ckcv_ray.claims.rules import parse_rule
from ckcv_ray.errors import REMOVED

TABLE = "x,y\n" + "\n".join(f"{i},{'ab'[i % 3 == 0]}" for i in range(40)) + "\n"

COMMANDS = (
    ["run", "t.csv", "--target", "y"],
    ["evaluate", "t.csv", "--target", "y"],
    ["report", "r", "--for", "tripod-ai"],
    ["report", "r", "--for", "tripod-ai", "--out", "form.md"],
    ["export", "r", "--out", "x"],
)


@pytest.mark.parametrize("name", REMOVED)
def test_what_was_removed_says_what_to_write_instead(
    name: str, ckcv: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE)
    assert REMOVED[name] in " ".join(answer(name, ckcv).split())


def answer(name: str, ckcv: Callable[..., Ran]) -> str:
    if name.isidentifier():
        with pytest.raises(ImportError) as error:
            getattr(ckcv_ray, name)
        return str(error.value)
    if name.startswith("result."):
        with pytest.raises(AttributeError) as lacking:
            getattr(object.__new__(ckcv_ray.Certified), name.removeprefix("result."))
        return str(lacking.value)
    option, _, value = name.partition("=")
    value = f"form{value}" if value.startswith(".") else value
    if option == "by":
        with pytest.raises(ckcv_ray.InputError) as error:
            parse_rule(value)
        return str(error.value)
    words = [f"--{option.replace('_', '-')}", value] if value else [name]
    of_command = name.startswith("ckcv ")
    for command in [name.split()[1:]] if of_command else COMMANDS:
        code, _, said = ckcv(*command, *([] if of_command else words))
        if "was removed" in said:
            assert code == 2
            return said
    return said


def test_the_changelog_tells_the_same() -> None:
    changes = (Path(__file__).parents[1] / "CHANGELOG.md").read_text().partition("### Removed\n")[2]
    assert [line for line in changes.splitlines() if line.startswith("* ")] == [
        f"* `{name}`: {instead}." for name, instead in REMOVED.items()
    ]
