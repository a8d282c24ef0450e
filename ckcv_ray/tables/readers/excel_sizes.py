"""What the parts of an Excel workbook expand to, counted in their text before a reader makes objects of them.

openpyxl keeps a row of cells, the strings that cells share, and everything else of a part as objects of some
hundred bytes each; a tag of four bytes is such an object, and packs to a few bits.
"""

import re
import zipfile
from collections.abc import Iterator

from ckcv_ray.errors import InputError
from ckcv_ray.tables.readers.limits import MAX_TABLE_BYTES, check_bytes

MAX_WORKBOOK_CELLS = MAX_TABLE_BYTES >> 5  # of a workbook: each takes 32 bytes, or more
MAX_SHEET_ROWS = 1 << 20  # of a sheet, as Excel has it
MAX_TAGS_IN_ROW = 1 << 20
MAX_TAGS_AT_ONCE = 1 << 24  # of a part that is held as a whole
MAX_OTHER_TAGS = 1 << 20  # other than those of cells and strings
CHUNK_BYTES = 1 << 21
HEAD_BYTES = 1 << 16
MAX_SMALL_BYTES = 3 * MAX_OTHER_TAGS  # of a part, which then has no more tags than that
CELL_TAGS = ("c", "v", "f", "is", "t", "r", "si", "row")
ROOT = re.compile(rb"<([^\s<>/:?!]+:)?[^\s<>/:?!]+[\s/>]")
HIDDEN = re.compile(rb"<[!?]|\0")  # what may hide tags, and another encoding
WIDE = {4: re.compile(rb"[\xf0-\xff]"), 2: re.compile(rb"[\xc0-\xef]")}  # bytes of a character, once read
VALUES = rb"""(?:[^<>"']|"[^"<]*"|'[^'<]*')*"""


def check_workbook(archive: zipfile.ZipFile, name: str) -> None:
    """Raise InputError if a workbook takes more memory than can be given.

    Args:
        archive: the workbook.
        name: of its file, for messages.
    """
    parts = archive.infolist()
    check_bytes(name, sum(part.file_size for part in parts))
    for part in parts:
        if part.file_size > MAX_SMALL_BYTES:
            counts = CellCounts()
            for block in _read_blocks(archive, part):
                counts.add(block)
                if problem := counts.problem():
                    raise InputError(f"{name}: {part.filename[:60]!r} {problem}; save the table as CSV")


class CellCounts:
    """Numbers of the tags of a part, block by block.

    Attributes:
        tags: all of them.
        cells, rows: of the sheet.
        others: tags that are none of cells and strings.
        in_row, most_in_row: tags since a row began or ended, and the most of any row.
        size, width: bytes of the part, and of a character of text once read.
        is_streamed: whether it says its dimension, so that no reader has to look for it at the end.
        is_hidden, is_nested: whether tags may be hidden in it, or rows be within rows.
    """

    def __init__(self) -> None:
        self.tags = self.cells = self.rows = self.others = self.in_row = self.most_in_row = 0
        self.size = self.width = 0
        self.prefix: bytes | None = None
        self.is_open = self.is_nested = self.is_hidden = self.is_streamed = False

    def add(self, block: bytes) -> None:
        """Count a block, which begins and ends between tags."""
        if self.prefix is None:
            root = ROOT.search(head := block[:HEAD_BYTES])
            self.prefix = (root[1] or b"") if root else b""
            self.is_streamed = b"<" + self.prefix + b"dimension" in head
        begins = {tag: block.count(b"<" + self.prefix + tag.encode()) for tag in CELL_TAGS}
        ends = sum(block.count(b"</" + self.prefix + tag.encode()) for tag in CELL_TAGS)
        tags = block.count(b"<")
        self.tags += tags
        self.cells += begins["c"]
        self.others += max(0, tags - sum(begins.values()) - ends)
        self.is_hidden |= bool(HIDDEN.search(block, 1 if self.size else HEAD_BYTES))
        self.size += len(block)
        self.width = max(self.width, 1, *(width for width, found in WIDE.items() if found.search(block)))
        self._add_rows(block, self.prefix)

    def _add_rows(self, block: bytes, prefix: bytes) -> None:
        at = 0
        for tag in re.finditer(rb"<(/?)" + re.escape(prefix) + rb"row(?=[\s/>])" + VALUES + rb">", block):
            self.in_row += block.count(b"<", at, tag.start())
            self.most_in_row = max(self.most_in_row, self.in_row)
            self.in_row, at = 0, tag.end()
            begins = not tag[1]
            self.rows += begins
            self.is_nested |= begins and self.is_open
            self.is_open = begins and not tag[0].endswith(b"/>")
        self.in_row += block.count(b"<", at)
        self.most_in_row = max(self.most_in_row, self.in_row if self.rows else 0)

    def problem(self) -> str:
        """Say what is too much; "" if nothing is."""
        if self.size * self.width > MAX_TABLE_BYTES:
            return f"takes more than {MAX_TABLE_BYTES >> 20:,} MiB"
        if self.cells > MAX_WORKBOOK_CELLS or self.rows > MAX_SHEET_ROWS:
            return f"has more than {MAX_WORKBOOK_CELLS:,} cells or {MAX_SHEET_ROWS:,} rows"
        if self.others > MAX_OTHER_TAGS:
            return f"has more than {MAX_OTHER_TAGS:,} tags of formats, merged cells and the like"
        if self.most_in_row > MAX_TAGS_IN_ROW:
            return f"has a row of more than {MAX_TAGS_IN_ROW:,} tags"
        if self.tags > MAX_TAGS_AT_ONCE and not (self.is_streamed and self.rows):
            return f"has more than {MAX_TAGS_AT_ONCE:,} tags, and does not say its dimension"
        if self.is_hidden or self.is_nested:
            return "holds remarks, CDATA or rows within rows"
        return ""


def _read_blocks(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield a part in blocks that end where a tag begins."""
    rest = b""
    with archive.open(part) as stream:
        while block := stream.read(CHUNK_BYTES):
            block = rest + block
            cut = block.rfind(b"<")
            if cut < 1 or len(block) - cut > CHUNK_BYTES:
                cut = len(block)
            yield block[:cut]
            rest = block[cut:]
    if rest:
        yield rest
