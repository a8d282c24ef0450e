"""A person's answers to the items of a form: read from TOML or Markdown, and a template to write them in.

TOML has one text for each number: ``"5a" = "..."``. Markdown has a heading for each item, whose first word is
its number: ``## 5a Data``, followed by the answer. Comments (in Markdown ``<!-- ... -->``) are left out. An
empty answer is none.
"""

import re
import tomllib

from ckcv_ray.errors import InputError
from ckcv_ray.reports.forms import Form
from ckcv_ray.validation import quote

TOML, MARKDOWN = ".toml", ".md"
ANSWER_SUFFIXES = (TOML, MARKDOWN)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
HEADING = re.compile(r"^##[ \t]+(.*)$", re.MULTILINE)
UNPRINTABLE = re.compile(r"[^\S\n ]")  # white space but line ends


def parse_answers(name: str, text: str, form: Form) -> dict[str, str]:
    """Return answers by the numbers of items; empty ones are left out.

    Args:
        name: of the file; its suffix tells the format.
        text: its content.
        form: whose numbers headings begin with.

    Raises:
        InputError: the text is not of this format, has an answer twice, or characters that cannot be printed.
    """
    found = _parse_toml(name, text) if name.endswith(TOML) else _parse_markdown(name, text, form)
    answers = {number: UNPRINTABLE.sub(" ", answer).strip() for number, answer in found.items()}
    for number, answer in answers.items():
        if not answer.replace("\n", "").isprintable():
            raise InputError(
                f"answers={name!r}: the answer to item {number} has characters that cannot be printed"
            )
    return {number: answer for number, answer in answers.items() if answer}


def write_template(suffix: str, form: Form) -> str:
    """Return a file for the answers to every item that asks a person, with what is asked as comments."""
    asked = [item for item in form.item if item.ask]
    if suffix == TOML:
        head = f"# Answers to items of {form.title}. An empty answer leaves an item open.\n"
        return head + "".join(f'\n# {item.text}\n# {item.ask}\n"{item.number}" = ""\n' for item in asked)
    head = f"# Answers to items of {form.title}\n\n<!-- An item without an answer stays open. -->\n"
    return head + "".join(
        f"\n## {item.number} {item.section}\n\n<!-- {item.text} {item.ask} -->\n" for item in asked
    )


def _parse_toml(name: str, text: str) -> dict[str, str]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"answers={name!r} is not TOML: {error}") from None
    for number, answer in found.items():
        if not isinstance(answer, str):
            raise InputError(
                f"answers={name!r}: item {quote(number)} is {quote(answer)}, not a text: write it in quotes"
            )
    return found


def _parse_markdown(name: str, text: str, form: Form) -> dict[str, str]:
    _, *parts = HEADING.split(COMMENT.sub("", text))
    if not parts:
        raise InputError(
            f"answers={name!r} has no heading such as '## {form.item[0].number}': write one for each item"
        )
    numbers = sorted((item.number for item in form.item), key=len, reverse=True)
    answers: dict[str, str] = {}
    for heading, answer in zip(parts[::2], parts[1::2], strict=True):
        number = next((n for n in numbers if f"{heading} ".startswith(f"{n} ")), heading.split(" ")[0])
        if number in answers:
            raise InputError(f"answers={name!r} answers item {number} twice: leave one heading out")
        answers[number] = answer
    return answers
