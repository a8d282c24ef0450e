"""Code pages of text tables: what a file that is not in UTF-8 is read as, or the question what it is.

Nearly any bytes can be read as text of western Europe (cp1252), also those of Russian, of Japanese or of a
Mac. A file is read as that if its words then look like words; else likely code pages are offered, with what
a word of it is in each.
"""

import re
from contextlib import suppress
from itertools import islice
from unicodedata import name as describe

from ckcv_ray.errors import InputError
from ckcv_ray.validation import quote

WESTERN = "cp1252"  # what spreadsheets of western Europe write
OTHERS = (  # the likelier first
    *("cp1251", "mac_roman", "shift_jis", "cp932", "koi8_r", "euc_kr", "gb18030", "big5"),
    *("cp1250", "cp850", "cp1253", "cp1255", "cp1256", "cp866", "euc_jp"),
)
MAX_OFFERED = 4
MAX_WORDS = 50_000  # that are looked at
SAMPLE_BYTES = 1 << 20  # in which code pages are compared
LONGEST_WORD = 40
ODD_SHARE = 20  # fewer than one word in 20 may be odd
WORD_START = re.compile(r"[A-Za-z]*\Z")
WORD_END = re.compile(r"[^\0-\x7f][^\0-@\[-`{-\x7f]*")  # from the first letter on that is not ASCII
BETWEEN_WORDS = re.compile(rb"[\s,;\"]")
SYMBOLS = {
    **dict.fromkeys("’‘–—…·´°×µªº\xa0", "j"),  # may join letters
    **dict.fromkeys("¹²³", "2"),
    **dict.fromkeys("„‚¿¡", "p"),  # open a word, and do not end it
    **dict.fromkeys("“”«»‹›", "q"),
}
ODD = re.compile("x|Lp|L[spq]+L|[s2]{2}|2LL|[al]U|[AU]U[al]".replace("L", "[aAlUo]"))  # see _outline
ODD_IN_LATIN = re.compile("[lU]{3}|^[^aA]*$")
ALONE = "àèéåöøæÀÉÅÖØÆ"  # letters that are words, or symbols, by themselves
SCRIPTS = dict.fromkeys(("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"), "CJK")


def check_encoding(encoding: str | None) -> None:
    """Raise InputError unless an encoding is one of text that Python knows; None is one to be found."""
    try:
        "a".encode("utf-8" if encoding is None else encoding)
    except (LookupError, ValueError, TypeError):
        known = ", ".join((WESTERN, *OTHERS[:3]))
        raise InputError(
            f"encoding={quote(encoding)}: expected one of text that Python knows, such as {known} or utf-16"
        ) from None


def decode_western(content: bytes, name: str) -> tuple[str, str]:
    """Return text that is not in UTF-8, and what has to be said of that.

    Raises:
        InputError: it does not look like text of western Europe.
    """
    try:
        text = content.decode(WESTERN)
    except UnicodeDecodeError as error:
        raise InputError(_ask(content, error.start, name)) from None
    words = find_words(text)
    odd = [word for word in words if not is_plausible(word)]
    if len(odd) * ODD_SHARE >= len(words):
        raise InputError(_ask(content, words[odd[0]], name))
    sample = odd[0] if odd else next(filter(str.isalpha, words), next(iter(words)))
    return text, f"is not UTF-8: read as {WESTERN}, as in {sample!r}; say --encoding if that is wrong"


def find_words(text: str) -> dict[str, int]:
    """Return the first words that are not ASCII, each once, with the place of its first such letter."""
    words: dict[str, int] = {}
    for found in islice(WORD_END.finditer(text), MAX_WORDS):
        at = found.start()
        start = WORD_START.findall(text[max(0, at - LONGEST_WORD) : at])[0]
        words.setdefault(start + found[0][:LONGEST_WORD], at)
    return words


def is_plausible(word: str) -> bool:
    """Return whether a word that is not ASCII looks like one, as it does in the right code page.

    Its letters are of one script, without symbols among them, and not capital after small ones. A Latin word
    has an ASCII letter as well, and at most two others together.
    """
    outline = "".join(map(_outline, word))
    letters = [letter for letter, kind in zip(word, outline, strict=True) if kind in "aAlUo"]
    if not letters:
        return not ODD.search(outline)
    scripts = {describe(letter, "NONE").split()[0] for letter in letters}
    scripts = {SCRIPTS.get(script, script) for script in scripts}
    if ODD.search(outline) or len(scripts) > 1 or "HALFWIDTH" in scripts:
        return False
    alone = len(word) == 1 and word in ALONE
    return scripts != {"LATIN"} or alone or not ODD_IN_LATIN.search(outline)


def _outline(c: str) -> str:
    """Return a letter that says what a character is: A, a (ASCII), U, l, o (other letters), or a mark."""
    if c in SYMBOLS or not c.isalpha():
        return SYMBOLS.get(c, "s" if c.isprintable() else "x")
    if c.isascii():
        return "A" if c.isupper() else "a"
    return "U" if c.isupper() else "l" if c.islower() else "o"


def _ask(content: bytes, place: int, name: str) -> str:
    """Return the question which encoding a text is in, given the place of a byte that is in doubt."""
    first = content.rfind(b"\n", 0, max(0, place - SAMPLE_BYTES // 2)) + 1
    lines = content[first : first + SAMPLE_BYTES]
    lines = lines[: lines.rfind(b"\n") + 1] or lines
    characters = lines.decode("utf-8", "replace")
    broken = characters.count("\ufffd")
    if 2 * broken < sum(not c.isascii() for c in characters):
        try:
            content.decode()
        except UnicodeDecodeError as error:
            line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
            return (
                f"{name} is UTF-8, but not in line {line:,}, which has the byte {byte:#x}: files of two "
                f"encodings may be joined in it; save all in UTF-8, or say --encoding {WESTERN} if none of "
                "it is"
            )
    start, end = content[max(0, place - LONGEST_WORD) : place], content[place : place + LONGEST_WORD]
    word = BETWEEN_WORDS.split(start)[-1] + BETWEEN_WORDS.split(end, 1)[0]
    shares: dict[str, float] = {}
    for encoding in OTHERS:
        with suppress(UnicodeDecodeError):
            words = find_words(lines.decode(encoding))
            shares[encoding] = sum(map(is_plausible, words)) / max(1, len(words))
    readings: dict[str, str] = {}  # the encoding of each
    for encoding in sorted(shares, key=lambda encoding: -shares[encoding]):
        readings.setdefault(word.decode(encoding, "replace"), encoding)
    offered = [(encoding, reading) for reading, encoding in readings.items()][:MAX_OFFERED]
    with suppress(UnicodeDecodeError):
        offered.append((WESTERN, word.decode(WESTERN)))
    named = ", ".join(f"--encoding {encoding} for {reading!r}" for encoding, reading in offered)
    line = content.count(b"\n", 0, place) + 1
    return f"{name} is not UTF-8, and what line {line:,} has is not certain: say {named}, or another encoding"
