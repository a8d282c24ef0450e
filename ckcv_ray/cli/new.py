"""Command new: a study file with every option that matters, after a look at a table."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import Field
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

from ckcv_ray.cli.data_options import ChosenTable, read_chosen
from ckcv_ray.cli.notes import describe_columns, describe_reading
from ckcv_ray.cli.options import make_option, with_options
from ckcv_ray.cli.output import results, say
from ckcv_ray.cli.study_options import SLOT_PARTS, list_offered, name_part
from ckcv_ray.core.options import Option, options
from ckcv_ray.errors import InputError, plain, pluralize
from ckcv_ray.storage.files import write_atomically
from ckcv_ray.study import SLOTS, Problem, Study, list_options
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import as_path

COMMENT_WIDTH = 100


@with_options(table=read_chosen)
def new(
    table: ChosenTable,
    out: Annotated[Path, make_option("Study file to write; - for standard output.", "study.toml")] = Path(
        "study.toml"
    ),
) -> None:
    """Write a study file for a table, with every option that matters, its default and what it means.

    Looks at the columns of the table, and says in comments what was found: columns that look like groups or
    that number the rows, gaps, and what looks like a mistake. Rows that a run would hold out are not looked
    at. As it is written, the file gives the same run as no file.

        ckcv new patients.csv --target outcome
        ckcv run patients.csv --target outcome --study study.toml
    """
    stdout = str(out) == "-"
    if not stdout and as_path("out", out).exists():
        raise InputError(f"out={str(out)!r} exists: name another file, or remove it")
    text = "\n".join(_describe_study(table.task, "study.toml" if stdout else str(out))) + "\n"
    if stdout:
        print(text, end="", file=results())
        return
    try:
        write_atomically(out, text.encode())
    except OSError as error:
        raise InputError(f"out={str(out)!r} cannot be written: {error.strerror or error}") from None
    say(f"study file: {out}")


def _describe_study(task: Task, file: str) -> Iterator[str]:
    """Yield the lines of a study file for a task."""
    problem = Problem.of(Study.of(), task)
    command = shlex.join(["ckcv", "run", task.source, "--target", task.target, "--study", file])
    classes = pluralize(task.n_classes, "class", "classes")
    columns = f"{pluralize(len(task.features), 'column')} to learn from"
    yield f"# A study of {plain(task.source)}: {pluralize(task.n, 'row')}, {columns}, {classes}. Run it with"
    yield f"#     {plain(command)}"
    yield "# As it stands it is the default study; options on the command line take precedence."
    yield from (f"# {line}" for line in describe_columns(problem.task, task.n - problem.task.n))
    hints = [*filter(None, [task.question]), *describe_reading(problem)]
    yield from (line for hint in hints for line in _comment(plain(hint)))
    yield from _list_options()


def _list_options() -> Iterator[str]:
    """Yield a line for each option of the default study, and one in a comment for each of other parts."""
    study = Study.of()
    given, parts = study.options(), study.parts
    listed: set[str] = set()
    for slot in SLOTS:
        text, _ = SLOT_PARTS.get(slot, ("", None))
        offered = list_offered(slot)
        yield ""
        yield from _comment(f"{slot}: " + text.format(", ".join(map(name_part, offered.items()))))
        yield f'{slot} = "{given[slot]}"'
        yield from _list_part(parts[slot], given, listed)
        for name, part in offered.items():
            yield from _list_part(part, {}, listed, f"with {slot} = {name}: ")
    yield ""
    yield from (line for name, field in list_options().items() for line in _describe(name, field, given))


def _list_part(part: Any, given: dict[str, Any], listed: set[str], when: str = "") -> Iterator[str]:
    """Yield the lines of the options of a part that are not listed yet."""
    for name, field in options(part).items():
        if name not in listed and not field.metadata["option"].hidden:
            listed.add(name)
            yield from _describe(name, field, given, when)


def _describe(name: str, field: Field[Any], given: dict[str, Any], when: str = "") -> Iterator[str]:
    """Yield a comment on an option, and the option; a comment too if it has no value in the default study."""
    option: Option = field.metadata["option"]
    yield from _comment(f"{when}{option.help}")
    if value := _as_toml(name, option, given.get(name)):
        yield f"{name} = {value}"
    elif value := _as_toml(name, option, field.default):
        yield f"# {name} = {value}"
    else:
        yield f"# {name} ={f'  # {option.default_text}' if option.default_text else ''}"


def _as_toml(name: str, option: Option, value: Any) -> str:
    """Return a value in TOML, a list as the text that is shown for it; "" for none."""
    if value is None or value == () or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if option.kind in (int, float):
        return f"{value}"
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    with suppress(InputError):  # what is shown for a default may be words
        if option.default_text and option.check(name, option.default_text) == value:
            text = option.default_text
    return f'"{text}"'


def _comment(text: str) -> list[str]:
    """Return text as lines of comments."""
    return [f"# {line}" for line in wrap(text, COMMENT_WIDTH, break_long_words=False, break_on_hyphens=False)]
