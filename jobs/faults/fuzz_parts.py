"""Parts of the inputs of ``fuzz``: odd values, a small valid table, damage to bytes."""

import struct
from math import inf, nan
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

ROWS = 8
SEEN = [i * 0.5 for i in range(ROWS)]
CLASSES = ["no", "yes"] * (ROWS // 2)
DEEP, HUGE = "@deep", "@huge"  # placeholders in a JSON tree for values that json.dumps cannot write
TOKENS = [
    *b"nan inf -1 0 1e999 1e308 5e-324 null true None NaN y X \0 \" ' , : # = }".split(b" "),
    *(b"\n", b"\r", b"9" * 25, b"9" * 5000, b"0x" + b"f" * 5000),
    *(b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", "é".encode(), "\u2028".encode(), b"\x1b[31m"),
    *(b"[" * 5000, b"{" * 5000, b'{"a":' * 5000, b"[[", b"]]"),
    *(struct.pack("<q", value) for value in (-1, 1 << 31, 1 << 40, 2**63 - 1)),
    *(struct.pack("<i", value) for value in (-1, 1 << 30, 2**31 - 1)),
]
WORDS = ["", "y", "x", "0", "1", "nan", "inf", "a\nb", "\0", "\x1b[31m", "é", "\u2028", "x" * 3000, '"', ","]
NUMBERS: list[Any] = [0, -0.0, 1, -1, 2, 3, 7, 0.5, 1e-320, 1e308, -1e308, 2**31, 2**53 + 1]
NUMBERS += [2**63 - 1, -(2**63), 2**64, 10**400]
VALUES: list[Any] = [
    *NUMBERS,
    *WORDS,
    *(None, True, False, nan, inf, [], {}, [[1]], [None], {"a": {}}, {"a": "\n"}, [0.1, "1"]),
    *(DEEP, HUGE, "3:10000000", "log:-2:4:10000", "log:0:400:9", "holdout", "paper"),
]


class Case(NamedTuple):
    """The content of a file."""

    content: bytes

    def __repr__(self) -> str:
        return f"a case of {len(self.content)} bytes"  # hypothesis would spell out all of it


@st.composite
def damaged(draw: DrawFn, sound: SearchStrategy[bytes]) -> bytes:
    """Draw a valid file damaged at up to six positions."""
    content = bytearray(draw(sound))
    for _ in range(draw(st.integers(0, 6))):
        a, b = sorted(draw(st.integers(0, len(content))) for _ in range(2))
        how = draw(st.sampled_from(("flip", "insert", "overwrite", "cut", "remove", "repeat", "move")))
        token = draw(st.sampled_from(TOKENS) | st.binary(min_size=1, max_size=9))
        match how:
            case "flip" if a < len(content):
                content[a] ^= 1 << draw(st.integers(0, 7))
            case "insert":
                content[a:a] = token
            case "overwrite":
                content[a : a + len(token)] = token
            case "cut":
                del content[b:]
            case "remove":
                del content[a:b]
            case "repeat":
                content[b:b] = content[a:b] * draw(st.integers(1, 50))
            case "move":
                content[a:a] = content[b : b + 64]
    return bytes(content)


def rarely(odd: SearchStrategy[Any], usual: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Draw an odd value one time in eight, so that most files reach the next check."""
    return st.integers(0, 7).flatmap(lambda i: odd if i == 7 else usual)
