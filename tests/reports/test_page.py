"""The HTML page of a run: it says what the summary says, loads nothing, and takes no name for markup."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import Ran, blobs
from forgery import reseal
from matplotlib.image import imread
from pages import FORBIDDEN, HOSTILE, Page

from ckcv_ray import load_run
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.engine.backend import SERIAL as IN_PROCESS
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import evaluate, make_failures
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.records.record import Outcome
from ckcv_ray.reports.facts import flatten
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.run import Job, check_job, run_job, run_work
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import write_report
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.task import Roles, Task, TestRows

Command = Callable[..., Ran]
SERIAL = Execution("serial")
SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5, 20, 21), n_splits=5, report_k=(5,))
NAMES = ("</style><script>1</script>", "{{ 7 * 7 }} & <b>", "長い名前 שלום العربية", "w" * 5000)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def hostile_task() -> Task:
    plain = blobs(30, d=len(NAMES))
    columns = dict(zip(NAMES, plain.X.T, strict=True))
    labels = np.where(plain.y == 1, *HOSTILE)
    target = "<title>&\"' target"
    table = pa.table(columns | {target: labels})
    return Task.from_table(table, Roles(target), source='"><script>2</script>.csv')


@cache
def show_once(out: Path) -> str:
    """The page of a run that nothing below changes, made once."""
    return make_page(out)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with rows to test on; nothing below changes it."""
    task, out = blobs(40, seed=3, shift=2.0), tmp_path_factory.mktemp("report") / "run"
    run_job(Job(SMALL.replace(seed=3), task, out, TestRows(task.X, task.y)), SERIAL)
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile") / "run"
    run_job(Job(SMALL, hostile_task(), out), SERIAL)
    return out


class Failing(SerialBackend):
    """Loses every unit at k = 4, the second fold size."""

    def wait(self) -> list[Outcome]:
        units, n_totals = self.queue.popleft().units, self.inputs.problem.n_totals
        lost, kept = [u for u in units if u.size == 1], [u for u in units if u.size != 1]
        return [evaluate(kept, self.inputs), make_failures(lost, n_totals, "Traceback: a broken <solver>")]


def test_a_provisional_run_says_so_beside_what_is_proven(tmp_path: Path) -> None:
    job = Job(SMALL, blobs(30, seed=1), tmp_path / "run")
    result = run_work(check_job(job), opened=IN_PROCESS._replace(backend=Failing))
    assert result.certificate.provisional
    assert {row["k_first"] for row in result.per_k() if row["state"] == "failed"} == {4}
    text = Page(make_page(tmp_path / "run")).text
    assert "lower bound (failed)" in text
    assert "Provisional: evaluations failed; the bound is proven nevertheless" in text
    assert ceil_percent(result.certificate.first.bound) in text
    assert "The number to quote" not in text
    assert "Traceback: a broken <solver>" in text
    assert f"{result.execution['evaluations']['failed']:,} evaluations failed" in text


def unsealed(file: Path) -> str:
    text, seal = file.read_text().rsplit("<!--", 1)
    assert seal == f" SHA-256 of all before: {hashlib.sha256(text.encode()).hexdigest()} -->\n"
    return text


def test_the_page_is_a_function_of_the_folder(
    finished: Path, monkeypatch: pytest.MonkeyPatch, ckcv: Command
) -> None:
    first = make_page(finished)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert ckcv("report", finished)[0] == 0
    assert unsealed(finished / "report.html") == first
    assert str(finished) not in first
    assert verify(finished).differences == []
    assert "report.html" not in RunFolder(finished).names()


@pytest.mark.parametrize("which", ["finished", "hostile"])
def test_nothing_is_loaded_or_executed(which: str, request: pytest.FixtureRequest) -> None:
    text = show_once(request.getfixturevalue(which))
    shown = Page(text)
    assert not FORBIDDEN & set(shown.tags)
    for name, value in shown.attributes:
        assert not name.startswith("on"), (name, value)
        if name in ("src", "href", "xlink:href", "action"):
            assert value.startswith("#"), (name, value)
    assert not re.findall(r"url\((?!#)|@import", text)
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text
    assert 'name="viewport"' in text


def test_names_from_the_data_are_text(hostile: Path) -> None:
    text, task = Page(show_once(hostile)).text, load_run(hostile).task
    for name in (*task.classes, *task.features, task.target.name):
        assert str(name) in text
    assert "<script>2</script>.csv" in text


def test_every_figure_has_words_and_a_table(finished: Path) -> None:
    text = show_once(finished)
    shown = Page(text)
    assert len(shown.labels) == 7  # of what was measured, and of the search
    assert all("table below" in label for label in shown.labels)
    assert shown.tags.count("figure") == 7
    assert shown.text.count("The same as a table") == 7
    assert "currentColor" in text
    ids = [value for name, value in shown.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_an_unfinished_run_has_no_page(tmp_path: Path, ckcv: Command) -> None:
    run_job(Job(SMALL, blobs(24), tmp_path / "run"), SERIAL)
    (tmp_path / "run" / "manifest.json").unlink()
    with pytest.raises(StoreError, match="not finished"):
        make_page(tmp_path / "run")
    assert ckcv("report", tmp_path / "run")[0] == ckcv("report", tmp_path / "nowhere")[0] == 4


@pytest.mark.parametrize("name", ["no/such/folder.html", ".", "certificate.json", "ensemble/new.html"])
def test_a_page_never_replaces_anything_of_a_run(name: str, finished: Path) -> None:
    before = {file: file.read_bytes() for file in finished.rglob("*") if file.is_file()}
    with pytest.raises(InputError, match=r"cannot write|is in the run folder"):
        write_report(RunFolder(finished).files, "page", finished / name)
    assert {file: file.read_bytes() for file in finished.rglob("*") if file.is_file()} == before


def test_a_log_that_leads_elsewhere_is_not_drawn(tmp_path: Path) -> None:
    run_job(Job(SMALL, blobs(30), tmp_path / "run"), SERIAL)
    for part in (tmp_path / "run" / "log").iterdir():
        part.unlink()
    reseal(tmp_path / "run")
    with pytest.raises(StoreError, match="does not lead to"):
        make_page(tmp_path / "run")


def test_options_are_flat_and_none_is_a_dash() -> None:
    values = {"a": None, "b": [], "c": {"d": True, "e": (1, "x")}, "f": [{"name": "tree", "g": 1}, {"h": ""}]}
    assert flatten(values) == [
        ("a", "–"),
        ("b", "none"),
        ("c.d", "yes"),
        ("c.e", "1, x"),
        ("f.tree.name", "tree"),
        ("f.tree.g", "1"),
        ("f.2.h", "–"),
    ]


@pytest.fixture
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed: no page was opened in a browser")
    return found


def browse(browser: str, place: Path, *words: str) -> str:
    """Standard output of a headless browser that keeps all it writes in ``place``."""
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-crash-reporter", "--hide-scrollbars")
    command = [browser, *options, f"--user-data-dir={place / 'profile'}", *words]
    home = {name: str(place) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    done = subprocess.run(command, env=os.environ | home, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_browser_shows_the_page_in_a_light_and_a_dark_scheme(
    browser: str, finished: Path, tmp_path: Path
) -> None:
    page = write_report(RunFolder(finished).files, show_once(finished), tmp_path / "page.html")
    background = []
    for scheme in ("0", "1"):
        picture = tmp_path / f"{scheme}.png"
        words = (f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={picture}")
        browse(browser, tmp_path, *words, "--window-size=1280,900", Path(page).as_uri())
        image = imread(picture)
        background.append(float(image[5, 5, :3].mean()))
        assert image.std() > 0.01
    assert background[0] < 0.2
    assert background[1] > 0.9


def test_a_browser_takes_no_name_for_markup(browser: str, hostile: Path, tmp_path: Path) -> None:
    target = Path(write_report(RunFolder(hostile).files, show_once(hostile), tmp_path / "page.html")).as_uri()
    shown = Page(browse(browser, tmp_path, "--dump-dom", target))
    assert not FORBIDDEN & set(shown.tags)
    assert shown.tags.count("svg") == 7
    assert f"ckcv run {load_run(hostile).run_id}" in shown.text


@pytest.mark.parametrize("which", ["finished", "hostile"])
def test_a_narrow_window_does_not_scroll_sideways(
    which: str, browser: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The page inside a frame of 390 pixels, measured by a script that the page itself would forbid."""
    page = show_once(request.getfixturevalue(which))
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    frame = f'<iframe style="width:390px;height:800px;border:0" srcdoc="{escape(text)}"></iframe>'
    script = "onload = () => document.title = frames[0].document.documentElement.scrollWidth"
    file = tmp_path / "frame.html"
    file.write_text(f"<meta charset=utf-8><title>-</title><script>{script}</script>{frame}")
    dom = browse(browser, tmp_path, "--dump-dom", file.as_uri())
    assert re.findall(r"<title>(.*?)</title>", dom)[0] == "390"
