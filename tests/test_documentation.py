"""Every code block of the README and of the documentation, run in the order shown (long ones scaled down).

Commands of ``ckcv`` and scripts run in this process, except those of the README, and at night of the
tutorial: there each line is run as typed. By day the README, the tutorial and one guide are run; for the
other pages, the options of their commands are parsed.
"""

import ast
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import click
import pytest
import yaml
from blocks import RUN, Block, read_blocks
from conftest import Ran, blobs, is_night
from pyarrow import csv, parquet
from ray.scripts.scripts import cli as ray_cli
from ray.scripts.symmetric_run import curate_and_validate_ray_start_args
from typer.core import TyperCommand

import ckcv_ray
from ckcv_paper import __main__ as paper
from ckcv_ray import load_run
from ckcv_ray.cli import data
from ckcv_ray.cli import main as ckcv_cli
from ckcv_ray.engine import worker
from ckcv_ray.records import candidates
from ckcv_ray.study.study import Study, read_toml

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
MAX_LINES = 130  # of the README
README, TUTORIAL = ROOT / "README.md", ROOT / "docs" / "tutorial.md"
STORIES = ROOT / "docs" / "examples" / "stories.md"  # whose output is shown line by line as it is printed
PAGES_BY_DAY = [README, TUTORIAL, ROOT / "docs" / "guides" / "evaluate.md"]
IMPORTED = re.compile(r"\b(?:from|import) (ckcv_ray\b[\w.]*)")
INCLUDED = re.compile(r"^ *```\{literalinclude\} (\S+\.py)$", re.MULTILINE)
SHELL = re.compile(r"[|&;<>$`*?#~\\]|^\s*\w+=")  # what bash alone understands,
QUOTED = re.compile(r"'[^']*'|\"[^\"$`\\]*\"")  # but for words in which it understands nothing
Place = Callable[[Path], Path]
Command = Callable[..., Ran]
Check = Callable[[list[list[str]]], None]


def name(block: Block) -> str:
    return f"{block.page.relative_to(ROOT)}:{block.line}"


BLOCKS = [block for page in PAGES for block in read_blocks(page)]
CHECKED = [block for block in BLOCKS if block.language in RUN or block.file]
LEFT = {block for block in CHECKED if block.page not in PAGES_BY_DAY}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The folder of a page, with what every page starts from."""

    @cache
    def of(page: Path) -> Path:
        made = tmp_path_factory.mktemp(page.stem)
        for linked in ("jobs", "tests", "pyproject.toml"):
            (made / linked).symlink_to(ROOT / linked)
        patients = blobs(40, seed=1, shift=2.0).columns().rename_columns(["age", "dose", "outcome"])
        csv.write_csv(patients, made / "patients.csv")
        csv.write_csv(patients.drop_columns(["outcome"]), made / "new.csv")
        return made

    return of


def shell(command: str, place: Path, code: int = 0) -> str:
    path = {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    words = ["bash", "-c", f"set -euo pipefail\n{command}"]
    done = subprocess.run(words, cwd=place, env=os.environ | path, capture_output=True, text=True)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    # Shown with -rP: how the tables of the results are refreshed.
    sys.stdout.write(f"$ {command}\n{done.stdout}")
    return done.stdout


def script(block: Block) -> str:
    """A Python block, after those it continues."""
    if not block.continues:
        return block.text
    before = [b for b in BLOCKS if b.page == block.page and b.language == "python" and b.line < block.line]
    return script(before[-1]) + block.text


def run_command(command: str, place: Path, ckcv: Command, as_typed: bool, code: int = 0) -> str:
    """Run a line of a console block in the folder of its page, a plain ``ckcv`` in this process.

    Return what it printed, and the messages of a plain ``ckcv``.
    """
    if as_typed or SHELL.search(QUOTED.sub("", command)) or shlex.split(command)[0] != "ckcv":
        return shell(command, place, code)
    ended, printed, messages = ckcv(*shlex.split(command)[1:])
    assert ended == code, f"{command}\n{printed}\n{messages}"
    sys.stdout.write(f"$ {command}\n{printed}")
    return printed + messages


def run_script(file: Path) -> None:
    """Run a script as ``python FILE`` does in its folder, but in this process; it leaves no module behind."""
    before = set(sys.modules)
    try:
        runpy.run_path(str(file), run_name="__main__")
    finally:
        for module in set(sys.modules) - before:
            if str(getattr(sys.modules[module], "__file__", "")).startswith(str(file.parent)):
                del sys.modules[module]


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, marks=pytest.mark.night if block in LEFT else ()) for block in CHECKED],
    ids=name,
)
def test_a_block_runs(
    block: Block,
    place: Place,
    ckcv: Command,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In order: later ones use what earlier ones of their page left."""
    full = request.config.getoption("--long")
    as_typed = block.page == README or (block.page == TUTORIAL and is_night(request.config))
    if block.demo or block.cluster:
        pytest.skip("run by jobs/check itself" if block.demo else "needs a cluster: its options are parsed")
    if block.long and not full:
        pytest.skip("long: run by jobs/check --all; its options are parsed")
    if block.needs_ida:
        request.getfixturevalue("ida")
    here = place(block.page)
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(here)
    monkeypatch.setattr(worker, "_worker", own := worker.Worker())  # others keep folders that may be gone
    request.addfinalizer(own.close)
    for command in block.setup:
        run_command(command, here, ckcv, as_typed)
    if block.file:
        (here / block.file).parent.mkdir(parents=True, exist_ok=True)
        (here / block.file).write_text(block.text)
    if block.language == "console":
        commands = block.to_run(full)
        assert commands, "a console block without a command"
        printed = [run_command(command, here, ckcv, as_typed) for command in commands[:-1]]
        printed.append(run_command(commands[-1], here, ckcv, as_typed, block.exit))
        if block.page == STORIES:
            shown = [one for one in block.text.splitlines() if one != "..." and not one.startswith("$ ")]
            assert {*shown} <= {*"\n".join(printed).splitlines()}
    elif block.language == "python":
        file = here / (block.file or "block.py")
        file.write_text(script(block))
        if as_typed or block.exit:
            shell(f"python {file.name}", here, block.exit)
        else:
            run_script(file)
    elif block.language == "toml":
        (here / (block.file or "block.toml")).write_text(block.text)
        Study.paper(**read_toml(here / (block.file or "block.toml")))


def ours(command: str) -> list[list[str]]:
    """The words of each command of this project, or of Ray, in a line of shell."""
    found = []
    for part in re.split(r"&&|\|\||[;|()]", command):
        words = shlex.split(part.split(" > ")[0], comments=True)
        for i, word in enumerate(words):
            first = all("=" in before for before in words[:i]) or words[i - 1] == "--"
            if first and word in ("ckcv", "ray"):
                found.append(words[i:])
            elif first and words[i : i + 3] == ["python", "-m", "ckcv_paper"]:
                found.append(words[i + 2 :])
            elif re.match(r"(\./)?jobs/\w+\.py|jobs/nightly$", word):
                found.append(["python", *words[i:]])
            elif re.match(r"jobs\.\w", word) and words[i - 1] == "-m":
                found.append(["python", f"{word.replace('.', '/')}.py", *words[i + 1 :]])
    return found


def parsed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Parse the options of a command, run nothing, and return the exit code: not 0 if one is refused."""
    if "--times" in words:  # of run_study, whose other options are parsed by processes that it starts
        at = words.index("--times")
        assert words.pop(at + 1).isdigit()
        del words[at]
    monkeypatch.setattr(TyperCommand, "invoke", lambda self, context: None)
    monkeypatch.setattr(click.Command, "invoke", lambda self, context: None)
    monkeypatch.setattr(sys, "argv", words if words[0] in ("ckcv", "ckcv_paper") else words[1:])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(data, "check_place", lambda source: None)
    try:
        if words[0] == "ray":
            ray_cli.main(words[1:])
        elif words[0] == "ckcv":
            ckcv_cli.main()
        elif words[0] == "ckcv_paper":
            paper.app()
        elif words[1] == "jobs/nightly" or "sys.argv[1]" not in (ROOT / words[1]).read_text():
            # else it has no options
            runpy.run_path(str(ROOT / words[1]), run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture
def check_known(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Check that the options of each given command are known."""

    def check(commands: list[list[str]]) -> None:
        for words in commands:
            code = parsed(words, monkeypatch)
            assert not code, f"{' '.join(words)}\n{capsys.readouterr()}"

    return check


@pytest.mark.parametrize("block", [b for b in CHECKED if b.cluster or b.long or b in LEFT], ids=name)
def test_the_options_of_a_block_that_is_not_run_are_known(block: Block, check_known: Check) -> None:
    check_known([words for command in block.commands for words in ours(command)])


STANDS_IN = """#!/usr/bin/env bash
printf '%s\\n' "${0##*/}" "$@" > "$(mktemp "$COMMANDS/XXXXXX")"
"""
SRUN = """#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""
SLURM = {"SLURM_CPUS_PER_TASK": "32", "SLURM_JOB_ID": "123456", "SLURM_JOB_NUM_NODES": "4"}


def test_the_options_of_the_slurm_scripts_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_known: Check
) -> None:
    """Run them with programs that stand in for others and write down what they are called with."""
    programs = {"python": STANDS_IN, "ray": STANDS_IN, "srun": SRUN}
    programs["hostname"] = "#!/usr/bin/env bash\necho 10.0.0.1\n"
    (tmp_path / "bin").mkdir()
    (tmp_path / "commands").mkdir()
    for program, text in programs.items():
        (tmp_path / "bin" / program).write_text(text)
        (tmp_path / "bin" / program).chmod(0o755)
    variables = {"HOME": tmp_path, "CKCV_ENVIRONMENT": tmp_path, "COMMANDS": tmp_path / "commands"}
    for variable, value in (variables | SLURM).items():
        monkeypatch.setenv(variable, str(value))
    for script in ("slurm.sbatch", "slurm_short.sbatch"):
        shell(f"bash {ROOT}/docs/guides/{script} twonorm:60:0 --out run", tmp_path)
    called = [file.read_text().splitlines() for file in (tmp_path / "commands").iterdir()]
    token, stop, cluster, study = sorted(called, key=lambda words: (words[0] == "python", words))
    at = cluster.index("--")
    options = curate_and_validate_ray_start_args(cluster[2:at])
    commands = [token, stop, study, cluster[at + 1 :], cluster[: at + 1], ["ray", "start", *options]]
    assert [words[:2] for words in commands] == [
        ["ray", "get-auth-token"],
        ["ray", "stop"],
        ["python", "jobs/run_study.py"],
        ["ckcv", "run"],
        ["ray", "symmetric-run"],
        ["ray", "start"],
    ]
    check_known(commands)


def test_the_options_of_the_rayjob_are_known(check_known: Check) -> None:
    _, job = yaml.safe_load_all((ROOT / "docs" / "guides" / "rayjob.yaml").read_text())
    (words,) = ours(job["spec"]["entrypoint"].replace("YOUR-BUCKET", "bucket"))
    assert words[:2] == ["ckcv", "run"]
    check_known([words])


def test_the_readme_is_short_and_its_links_lead_to_files() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= MAX_LINES
    assert "<img" not in readme
    for target in re.findall(r"\]\(([^)#]+)", readme):
        assert target.startswith("https://") or (ROOT / target).is_file(), target


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_imports_what_is_public(page: Path) -> None:
    """What it shows of the package itself may import anything; pages of the theory show single bounds."""
    included = [(page.parent / file).resolve() for file in INCLUDED.findall(page.read_text())]
    texts = [block.text for block in read_blocks(page) if block.language in RUN]
    texts += [file.read_text() for file in included if not file.is_relative_to(ROOT / "ckcv_ray")]
    public = {"ckcv_ray", "ckcv_ray.extend"}
    if page in NOTEBOOKS:
        texts, public = [page.read_text()], {"ckcv_ray"}
    if page.parent.name == "theory":
        public |= {f"ckcv_ray.core.bounds.{module}" for module in ("betting", "binomial")}
    assert {name for text in texts for name in IMPORTED.findall(text)} <= public


def test_the_architecture_has_a_row_for_each_module() -> None:
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    rows = re.findall(r"^\| `([\w/]+)` \| .", page, re.MULTILINE)
    package = ROOT / "ckcv_ray"
    files = {file.relative_to(package).with_suffix("").as_posix() for file in package.rglob("*.py")}
    assert sorted(rows) == sorted(name for name in files if not name.endswith(("__init__", "__main__")))


def test_the_architecture_shows_functions_of_their_length() -> None:
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    rows = re.findall(r"\| `([\w.]+)` \| \{source\}`([\w/.]+)` \| (\d+) \|", page)
    assert len(rows) == 10
    for name, file, lines in rows:
        found = ast.parse((ROOT / file).read_text())
        for part in name.split("."):
            (found,) = (node for node in found.body if getattr(node, "name", "") == part)
        assert abs(found.end_lineno - found.lineno + 1 - int(lines)) <= 3, f"{name} of {file}"


def test_the_reference_names_every_public_thing() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    for name in ckcv_ray.__all__:
        assert re.search(rf"auto(function|class|exception):: {name}\b", page), name


def test_the_reference_names_every_file_column_and_key(patients_run: Path) -> None:
    """Those of JSON that have a type are documented from it."""
    page = (ROOT / "docs" / "reference" / "files.md").read_text()
    columns = {name for file in patients_run.rglob("*.parquet") for name in parquet.read_schema(file).names}
    keys = set(json.loads((patients_run / "study.json").read_text()))
    states = {*candidates.STATES, *candidates.UNKNOWN_BEST}
    for name in columns - set(load_run(patients_run).task.features) - {"outcome"} | keys | states:
        assert f"`{name}`" in page, name
    for file in patients_run.iterdir():
        assert file.name in page, file.name


# The notebooks: run cell by cell, as the site runs them; nothing is stored in them


sys.path.append(str(ROOT / "docs" / "extensions"))

from notebooks import read_cells, run_cells  # noqa: E402

CARD = 'aria-label="result '
CODE = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_cards_and_plots(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = list(run_cells(read_cells(path.read_text())))
    assert [output for output in outputs if CARD in output.html]
    assert [output for output in outputs if output.html.startswith("<img alt=")]
    assert not [output for output in outputs if "object at 0x" in output.text]


def make_cell(source: str, **more: object) -> dict[str, object]:
    return CODE | {"source": source} | more


def test_a_plot_without_a_text_alternative_is_refused() -> None:
    plot = "from matplotlib.figure import Figure\nFigure().add_subplot()"
    with pytest.raises(ValueError, match="no text alternative"):
        list(run_cells([make_cell(plot)]))
    (output,) = run_cells([make_cell(plot, metadata={"alt": 'A "plot"'})])
    assert output.html.startswith('<img alt="A &quot;plot&quot;" src="data:image/svg+xml;base64,')
