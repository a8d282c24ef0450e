"""The code blocks of the documentation, and how each is checked; docs/contributing/index.md explains them.

Comment lines directly before a fence are its marks: ``% check: COMMAND`` in a page, and
``<!-- check: COMMAND -->`` in the README.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<language>\{?[\w-]*\}?)[^`]*$")
MARK = re.compile(r"^ *(?:%|<!--) *(?P<name>[a-z]+)(?:: *(?P<value>.+?))?(?: *-->)? *$")
FLAGS = {"long", "cluster", "demo", "continues", "ida"}
MARKS = FLAGS | {"file", "exit", "check", "setup"}
REFUSED = {"bash", "sh", "shell", "shell-session"}  # else blocks with commands would not be run
RUN = {"console", "python", "toml"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int  # number of its first fence, from 1
    language: str  # word after the fence
    text: str  # content, without the indentation of the fence
    check: tuple[str, ...] = ()  # commands to run instead of those shown, one for each; "=" for the one shown
    setup: tuple[str, ...] = ()  # commands to run before
    long: bool = False  # only the long check runs it
    cluster: bool = False  # it needs what a check does not have; its options are parsed
    demo: bool = False  # jobs/check runs it itself
    continues: bool = False  # it goes on from the Python block before it
    ida: bool = False  # it needs the IDA archive
    file: str = ""  # name of the file that its text is written to; "" for none
    exit: int = 0  # exit code of its last command

    @property
    def commands(self) -> list[str]:
        """The commands shown, each on one line."""
        if self.language != "console":
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        return [" ".join(line[2:].split()) for line in lines if line.startswith("$ ")]

    def to_run(self, full: bool) -> list[str]:
        """Return the commands of a check: those shown if ``full``, otherwise smaller ones."""
        if full or not self.check:
            return self.commands
        pairs = zip(self.commands, self.check, strict=True)
        return [shown if instead == "=" else instead for shown, instead in pairs]

    @property
    def needs_ida(self) -> bool:
        return self.ida or any("ida:" in part for part in (self.text, *self.check, *self.setup))


def read_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order.

    Raises:
        ValueError: a mark is unknown, a language is refused, a fence is not closed, or the number of commands
            to check differs from that of the commands shown.
    """
    return list(_blocks(page, page.read_text().splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        if (fence := FENCE.match(lines[at])) is None:
            at += 1
            continue
        indent, ticks = len(fence["indent"]), fence["ticks"]
        end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == ticks), None)
        if end is None:
            raise ValueError(f"{page}:{at + 1}: the fence is not closed")
        text = "\n".join(line[indent:] for line in lines[at + 1 : end]) + "\n"
        yield _block(page, at, fence["language"], text, _marks(page, lines, at))
        at = end + 1


def _marks(page: Path, lines: list[str], at: int) -> dict[str, list[str]]:
    """Read the comment lines directly before the fence at a line."""
    marks: dict[str, list[str]] = {}
    first = at
    while first > 0 and lines[first - 1].lstrip().startswith(("%", "<!--")):
        first -= 1
    for i in range(first, at):
        mark = MARK.match(lines[i])
        if mark is None or mark["name"] not in MARKS:
            known = ", ".join(sorted(MARKS))
            raise ValueError(f"{page}:{i + 1}: {lines[i]!r} is not a mark: expected one of {known}")
        marks.setdefault(mark["name"], []).append(mark["value"] or "")
    return marks


def _block(page: Path, at: int, language: str, text: str, marks: dict[str, list[str]]) -> Block:
    where = f"{page}:{at + 1}"
    if language in REFUSED:
        raise ValueError(f"{where}: {language} blocks are not run: expected console, with $ before commands")
    if language not in ("console", "markdown") and re.search(r"(?m)^ *\$ ", text):
        raise ValueError(f"{where}: there are commands in a {language or 'plain'} block: expected console")
    flags = dict.fromkeys(FLAGS & marks.keys(), True)
    block = Block(
        page,
        at + 1,
        language,
        text,
        check=tuple(marks.get("check", ())),
        setup=tuple(marks.get("setup", ())),
        file=marks.get("file", [""])[0],
        exit=int(marks.get("exit", ["0"])[0]),
        **flags,
    )
    if block.check and len(block.check) != len(block.commands):
        raise ValueError(f"{where}: {len(block.check)} commands to check, {len(block.commands)} shown")
    return block
