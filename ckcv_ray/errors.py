"""The exceptions, all caught by ``except CKCVError``, and functions that format text: messages, counts,
percentages, numbers in units of the target, and times.

Removed commands and options are listed in one table, which the command line, studies and CHANGELOG.md share.
"""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import ROUND_FLOOR, Decimal
from math import ceil, floor, log10

MAX_CHARACTERS = 1500
MAX_NAMED = 100
MAX_OF_NAME = 200
LIST_OPTIONS = ("features", "drop", "categorical", "numeric", "date")  # lists of column names
# percentages have two digits after the point wherever people read a number. Bounds, and means of bounds, are
# rounded up: rounded down they would say more than was computed. Lower bounds and levels are rounded down for
# the same reason, estimates and shares to the nearest.
DIGITS = 2
NUMBER_DIGITS = 4  # of numbers that are not percentages
SCALE = 100 * 10**DIGITS
NOT_SET = "–"
SLACK = 1e-9  # in units of the last digit: 0.423 is 42.30 %, although 0.423 * 10_000 is above 4230


def plain(text: str) -> str:
    """Return text of any origin as one printable line for terminals and logs, cut in the middle if long."""
    return cut("".join(c if c.isprintable() else escape_text(c) for c in cut(text)))


def printable(text: str) -> str:
    """Return text of any origin, escaping characters that could control a terminal; lines are kept."""
    return "".join(c if c.isprintable() or c in "\n\t" else escape_text(c) for c in text)


def name_reason(traceback: str) -> str:
    """Return type and message of the exception of a traceback, or the first line of another reason."""
    last = traceback.rpartition("Traceback (most recent call last):\n")[2].splitlines()
    return plain(next((line for line in last if line[:1].strip()), "unknown"))


def escape_text(text: str) -> str:
    """Return text with everything but printable ASCII as Python escapes."""
    return text.encode("unicode_escape").decode()


def cut(text: str, most: int = MAX_CHARACTERS) -> str:
    """Return text without its middle if it has more than ``most`` characters."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def cut_list(sentences: list[str], rest: str, most: int = MAX_NAMED) -> list[str]:
    """Return the first sentences, and if there are more, one that counts them, such as "7 {others}"."""
    more = len(sentences) - most
    return sentences[:most] + ([f"{more:,} {rest}"] if more > 0 else [])


def pluralize(number: int, singular: str, many: str | None = None) -> str:
    """Format a count with its noun in the singular or the plural: "1 class", "3 classes"."""
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


def write_option(option: str, *names: str) -> str:
    """Write an option and column names so that a shell reads the names, such as --group 'patient id'.

    Options that take several names read them as a line of a CSV file. Names too long for a message are cut.
    """
    shown = [cut(name, MAX_OF_NAME) for name in names]
    text = write_row(shown) if option in LIST_OPTIONS else shown[0]
    said = shlex.quote(text)
    return f"--{option}={said}" if text.startswith("-") else f"--{option} {said}"


def write_row(texts: Iterable[str]) -> str:
    """Write texts as a row of a CSV file, as options that take several column names read them."""
    return ",".join(
        '"{}"'.format(text.replace('"', '""'))
        if text.strip() != text or any(mark in text for mark in ',"\r\n')
        else text
        for text in texts
    )


def write_install(extra: str) -> str:
    """Return the command that installs an extra: the package is not in a registry, but in its clone."""
    return f'pip install ".[{extra}]" in the clone of ckcv_ray'


def ceil_percent(bound: float) -> str:
    """Format an upper bound, rounded up."""
    return f"{ceil(SCALE * bound - SLACK) / 10**DIGITS:.{DIGITS}f} %"


def floor_percent(bound: float) -> str:
    """Format a lower bound, rounded down."""
    return f"{floor(SCALE * bound + SLACK) / 10**DIGITS:.{DIGITS}f} %"


def format_percent(value: float) -> str:
    """Format an estimate or a share, rounded to the nearest."""
    return f"{round(SCALE * value) / 10**DIGITS:.{DIGITS}f} %"


def format_level(delta: float) -> str:
    """Format the level 1 - delta, rounded down, without trailing zeros, with more digits above 99.9 %."""
    digits = max(DIGITS, -floor(log10(delta)) - 1)
    level = (100 * (1 - Decimal(repr(delta)))).quantize(Decimal(10) ** -digits, ROUND_FLOOR)
    return f"{level.normalize():f} %"


def duration(seconds: float) -> str:
    """Format seconds in a suitable unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def round_bound(bound: float, up: bool = True) -> str:
    """Format a bound in units of the target, at least 0, with four digits, rounded to the safe side."""
    if not bound > 0:
        return "0"
    digits = NUMBER_DIGITS - 1 - floor(log10(bound))
    scaled = ceil(bound * 10.0**digits) if up else floor(bound * 10.0**digits)
    return f"{scaled * 10.0**-digits:.{max(0, digits)}f}"


def format_number(value: float) -> str:
    """Format a number in units of the target with four digits, or all before the point: "50", "0.1235"."""
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{NUMBER_DIGITS}g}"
    text = f"{value:.{max(0, NUMBER_DIGITS - 1 - floor(log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_about(count: float) -> str:
    """Format an expected number of rows, with two digits: "1,100"."""
    return f"{float(f'{count:.2g}'):,.0f}"


def format_score(value: float | None, layout: str = "") -> str:
    """Format a number with four decimals, or four digits where decimals suit it badly; "–" if unknown."""
    if value is None or value != value:
        return NOT_SET
    usual = value == 0 or 1e-3 <= abs(value) < 10_000
    return f"{value:{layout}.4{'f' if usual else 'g'}}"


def format_row(*values: str | float | None) -> tuple[str, ...]:
    """Format the cells of a row: text, counts, and shares in percent; None and nan are unknown."""
    return tuple(
        NOT_SET if value is None or value != value
        else value if isinstance(value, str)
        else format_percent(value) if isinstance(value, float)
        else f"{value:,}"
        for value in values
    )  # fmt: skip


class CKCVError(Exception):
    """Base class of every error that this package raises deliberately."""


class InputError(CKCVError, ValueError):
    """Invalid input that the user can correct; the message says how."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


class AbsentError(InputError):
    """A name that is not known here, or a package that is not installed or may not be imported."""


class StoreError(CKCVError):
    """A run folder that is damaged, in use, or belongs to something else."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


class LackingError(StoreError):
    """A run folder that names a part of a study or a package that is missing here, or may not be imported."""


class RunError(CKCVError):
    """A run that could not finish; completed work is kept."""


class UnreachableError(RunError):
    """An object store that does not answer, or refuses: what it holds is unknown, not damaged."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


@contextmanager
def convert_errors(kind: type[CKCVError], message: str) -> Iterator[None]:
    """Convert any exception that a reader raises for a bad file into an error of this kind.

    Its message is ``message`` and the first line of the reason. A store that cannot be reached says nothing
    about a file, so its error is passed on.
    """
    try:
        yield
    except (kind, UnreachableError):
        raise
    except MemoryError:
        raise kind(f"{message}: reading it needs more memory than there is") from None
    except Exception as error:  # readers raise many kinds: zipfile, EOF, type, key, recursion, Arrow errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise kind(f"{message}: {reason}") from None


REMOVED = {  # commands and options from before the first release, with what to write instead
    "--outer-splits": "write --holdout-share 0.5, which proves as much as nested outer splits did",
    "--outer-share": "write --holdout-share with the share of the rows that are to judge, such as 0.5",
    "--nested": "without it, ckcv predict applies the model that the certificate is about",
    "ckcv new": "ckcv plan TABLE --write-study mine.toml writes a study file",
    "ckcv copy": "copy the files or objects of the run with any program, such as aws s3 sync: the copy is "
    "the run, and ckcv verify checks it",
    "ckcv clean": "a resumed run removes what an earlier one left, and nothing else needs removing",
    "ckcv serve": "the guide Recipes answers rows over HTTP with a few lines around load_run(...).predict",
    "--pdf": "open the HTML report in a browser, and print it",
    "--sign": "sign the manifest of the run folder with ssh-keygen -Y sign -n ckcv manifest.json",
    "ckcv submit": "--workers divides the work among processes, --address among nodes of a Ray cluster",
    "ckcv shard": "ckcv run computes the whole study, and resumes it where a job was stopped",
    "ckcv gather": "ckcv run resumes a study, and shows its result as soon as everything is computed",
    "--shards": "--workers divides the work among processes, --address among nodes of a Ray cluster",
    "--slurm": "sbatch docs/guides/slurm.sbatch runs a study on Ray in an allocation of Slurm",
    "--call-sbatch": "sbatch docs/guides/slurm.sbatch runs a study on Ray in an allocation of Slurm",
    "--best-prefix": "write --all-members, which the claim of F* is about",
    "--bound": "leave it out; L_EE is the mean of Clopper-Pearson bounds, as in the paper",
    "--first-uniform": "leave it out; --certify holdout has tighter bounds",
    "--resume-until-done": "jobs/run_study.py --times 5 resumes by itself, with the options of ckcv run",
    "--spare": "leave it out: what early rounds of a budget do not need is used",
    "--unlabelled": "leave it out: nothing is proven of the model fitted on all rows",
    "ckcv verify --refit": "write --rerun, which runs the whole study again; models are always fitted again",
    "--costs": "write --criterion cost:sick=10,healthy=1",
    "--prevalence": 'write it with what is required: --require "ppv:0.02>=0.3"',
    "--tolerance": "write --param tolerance=0.0001",
    "--max-iter": "write --param max_iter=5000",
    "--solver": "write --param solver=newton",
    "--landmarks": "write --param landmarks=200",
    "--alpha": "write --param alpha=0.1,1,10",
    "--keep": "write --search budget:keep=0.5",
    "--survivors": "write --search budget:survivors=8",
    "--least-splits": "write --search budget:least_splits=3",
    "--refer": 'write ckcv run --answer "error<=0.05": predict then says which rows it is confident of',
}


def explain_removed(*names: str) -> str:
    """Return a sentence about the first of these names that was removed; "" if none was."""
    return next((f"{name} was removed: {REMOVED[name]}" for name in names if name in REMOVED), "")
