"""What a Feather file (Arrow's file format) expands to, from its footer and the heads of its batches alone.

Whoever writes a file chooses every size in it. Arrow allocates the length of a batch's body before it reads
it, and that of each compressed buffer before it unpacks it; several batches may be in one place of the file.
So these numbers are read here first, by themselves. Nothing is allocated for what they announce.

Heads are FlatBuffers, whose fields are numbered in File.fbs and Message.fbs of https://arrow.apache.org, and
are named below by these numbers.
"""

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAGIC = b"ARROW1"
TAIL = struct.Struct("<i6s")
BLOCK_FORMAT = struct.Struct("<qi4xq")  # of the footer: where a batch is, bytes of its head and of its body
BUFFER, NODE, LENGTH = struct.Struct("<qq"), struct.Struct("<qq"), struct.Struct("<q")
MAX_HEAD_BYTES = 1 << 26
CONTINUES = b"\xff\xff\xff\xff"  # before the length of a head, except in old files
DICTIONARIES, BATCHES = 2, 3
RECORDS, DICTIONARY = 3, 2  # kinds of heads
UNCOMPRESSED = -1  # length of a buffer that is not compressed, though others are


class FeatherSizes(NamedTuple):
    """What a batch expands to: its rows, and the bytes of its buffers; a dictionary has no rows."""

    rows: int
    size: int


def read_feather_sizes(file: BinaryIO) -> Iterator[FeatherSizes]:
    """Yield the sizes of every batch and every dictionary.

    Raises:
        ValueError, struct.error: the file is damaged.
    """
    end = file.seek(0, 2)
    length, magic = TAIL.unpack(_read(file, end - TAIL.size, TAIL.size, end))
    if magic != MAGIC:
        raise ValueError("it does not end as a Feather file does (of version 2)")
    footer = FeatherTable.root(_read(file, end - TAIL.size - length, length, end))
    for field in (DICTIONARIES, BATCHES):
        for at in footer.places(field, BLOCK_FORMAT.size):
            yield _measure(file, end, *BLOCK_FORMAT.unpack_from(footer.data, at))


def _measure(file: BinaryIO, end: int, start: int, head: int, body: int) -> FeatherSizes:
    content = _read(file, start, head, end)
    content = content.removeprefix(CONTINUES)
    message = FeatherTable.root(content[4:])
    kind, batch = message.number(1, "B"), message.table(2)
    if kind not in (RECORDS, DICTIONARY) or batch is None:
        raise ValueError("a batch is of another kind")
    if kind == DICTIONARY and (batch := batch.table(1)) is None:
        raise ValueError("a dictionary is empty")
    if not 0 <= message.number(3, "q") <= end or not 0 <= body <= end:
        raise ValueError("a batch is longer than the file")
    size, compressed = 0, batch.table(3) is not None
    for at in batch.places(2, BUFFER.size):
        offset, length = BUFFER.unpack_from(batch.data, at)
        if min(offset, length) < 0 or offset + length > body:
            raise ValueError("a buffer is outside its batch")
        size += length
        if compressed and length:
            (unpacked,) = LENGTH.unpack(_read(file, start + head + offset, LENGTH.size, end))
            if unpacked < UNCOMPRESSED:
                raise ValueError("a buffer has a negative length")
            size += max(0, unpacked)
    rows = batch.number(0, "q")
    lengths = [NODE.unpack_from(batch.data, at)[0] for at in batch.places(1, NODE.size)]
    if min([rows, *lengths]) < 0:
        raise ValueError("a batch has a negative length")
    return FeatherSizes(rows if kind == RECORDS else 0, size)


def _read(file: BinaryIO, at: int, length: int, end: int) -> bytes:
    if not (at >= 0 and 0 <= length <= MAX_HEAD_BYTES and at + length <= end):
        raise ValueError("it says to be longer than it is")
    file.seek(at)
    return file.read(length)


class FeatherTable:
    """A table of a FlatBuffer.

    Args:
        data: the buffer.
        at: where the table is.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - self._unpack("i", at)
        self.width = self._unpack("H", self.fields)

    @classmethod
    def root(cls, data: bytes) -> "FeatherTable":
        """Return the table that a buffer holds."""
        return cls(data, struct.unpack_from("<I", data)[0])

    def number(self, field: int, kind: str) -> int:
        """Return a field that is a number of a kind of ``struct``; 0 if it is not there."""
        place = self._place(field)
        return self._unpack(kind, place) if place else 0

    def table(self, field: int) -> "FeatherTable | None":
        """Return a field that is a table, None if it is not there."""
        place = self._place(field)
        return FeatherTable(self.data, place + self._unpack("I", place)) if place else None

    def places(self, field: int, width: int) -> range:
        """Return where the elements are of a field that is a list of structures of a width."""
        if not (place := self._place(field)):
            return range(0)
        start = place + self._unpack("I", place)
        stop = start + 4 + width * self._unpack("I", start)
        if stop > len(self.data):
            raise ValueError("a list does not end")
        return range(start + 4, stop, width)

    def _place(self, field: int) -> int:
        slot = 4 + 2 * field
        offset = self._unpack("H", self.fields + slot) if slot + 2 <= self.width else 0
        return self.at + offset if offset else 0

    def _unpack(self, kind: str, at: int) -> int:
        if at < 0:
            raise ValueError("a table is outside its buffer")
        value: int = struct.unpack_from(f"<{kind}", self.data, at)[0]
        return value
