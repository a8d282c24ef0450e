"""The download of the public archive from a server of the test's own: what is kept, and what is told."""

import hashlib
import io
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ckcv_paper import __main__ as command
from ckcv_paper import download
from ckcv_ray.cli import display
from ckcv_ray.errors import InputError

Ran = tuple[int, str, str]
URLS = download.URLS
CONTENT = bytes(range(256)) * 1500
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Answers each path in its own way, and notes what it was asked."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/moved":
            self.answer(302, b"", Location="/benchmarks.mat")
        elif self.path == "/leads-away":
            self.answer(302, b"", Location="ftp://127.0.0.1/benchmarks.mat")
        elif self.path == "/other":
            self.answer(200, b"another file")
        elif self.path == "/breaks-off":
            self.answer(200, CONTENT[:100_000], length=len(CONTENT))
        elif self.path == "/of-unknown-length":
            self.answer(200, CONTENT, length=None)
        elif self.path.startswith("/benchmarks.mat"):
            self.answer(200, CONTENT)
        else:
            self.answer(404, b"")

    def answer(self, code: int, body: bytes, length: int | None = 0, **headers: str) -> None:
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length or len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


class Server(HTTPServer):
    """Knows its own address and what it was asked."""

    @property
    def asked(self) -> list[str]:
        return self.RequestHandlerClass.asked

    def handle_error(self, *_: object) -> None:
        """A client that leaves early is nothing to report."""

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


@pytest.fixture(autouse=True)
def small_archive(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, a small file in place of the real one, no way to the real addresses, no proxy."""
    monkeypatch.setattr(download, "SHA256", DIGEST)
    monkeypatch.setattr(download, "URLS", ())
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[Server]:
    handler = type("Noting", (Handler,), {"asked": []})
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Counter:
    """A progress object that remembers."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self.calls: list[str] = []

    def update(self, n: int) -> None:
        self.done += n
        self.calls.append("update")

    def reset(self) -> None:
        self.done = 0
        self.calls.append("reset")

    def close(self) -> None:
        self.calls.append("close")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() or not any(path.iterdir()))


def refused(url: str | None) -> str:
    """The message for an address; it is one line, and nothing is kept."""
    before = {path: path.read_bytes() for path in [download.locate()] if path.exists()}
    with pytest.raises(InputError) as error:
        download.fetch(url)
    folder = download.locate().parent
    assert not folder.exists() or list(folder.iterdir()) == list(before)
    assert {path: path.read_bytes() for path in before} == before
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_fetched_lies_whole_in_the_cache(server: Server, cache: Path) -> None:
    progress = Counter()
    path = download.fetch(server.url("benchmarks.mat?download=1"), progress)
    assert path == download.locate()
    assert path.is_relative_to(cache)
    assert path.read_bytes() == CONTENT
    assert files(cache) == ["benchmarks.mat"]
    assert progress.total == progress.done == len(CONTENT)
    assert progress.calls.count("update") > 3
    assert progress.calls[-1] == "close"
    assert server.asked == ["/benchmarks.mat?download=1"]


def test_what_is_there_is_not_fetched_again(server: Server, closed_port: int) -> None:
    path = download.fetch(server.url("benchmarks.mat"))
    seen = path.stat()
    assert download.fetch(server.url("benchmarks.mat")) == path
    assert download.fetch(f"http://127.0.0.1:{closed_port}/benchmarks.mat") == path
    assert download.fetch() == path
    assert path.stat().st_mtime_ns == seen.st_mtime_ns
    assert len(server.asked) == 1


def test_a_damaged_file_is_replaced_or_left_as_it_is(server: Server) -> None:
    path = download.fetch(server.url("benchmarks.mat"))
    path.write_bytes(CONTENT[:-1])
    refused(server.url("other"))
    assert download.fetch(server.url("benchmarks.mat")).read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["moved", "of-unknown-length"])
def test_other_ways_of_answering(server: Server, path: str) -> None:
    assert download.fetch(server.url(path), Counter()).read_bytes() == CONTENT


def test_another_file_is_refused_with_both_checksums(server: Server) -> None:
    messages = refused(server.url("other"))
    assert f"its SHA-256 is {hashlib.sha256(b'another file').hexdigest()}, expected {DIGEST}" in messages
    assert server.url("other") in messages


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nothing-here", "404 Client Error: Not Found"),
        ("breaks-off", "100000 bytes read, 284000 more expected"),
        ("leads-away", "No connection adapters were found for 'ftp://127.0.0.1/benchmarks.mat'"),
    ],
)
def test_a_download_that_fails_is_told_with_a_way_out(server: Server, path: str, reason: str) -> None:
    messages = refused(server.url(path))
    assert f"{server.url(path)}: " in messages
    assert reason in messages
    assert "Alternatively, download benchmarks.mat" in messages
    assert "set CKCV_IDA to its path" in messages


def test_where_nothing_answers_that_is_told(closed_port: int) -> None:
    url = f"http://127.0.0.1:{closed_port}/benchmarks.mat"
    messages = refused(url)
    assert re.match(rf"cannot fetch benchmarks\.mat: {re.escape(url)}: .*refused\. Alternatively, ", messages)
    assert " object at " not in messages


def test_where_the_server_is_silent_it_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "SILENCE_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "timed out" in refused(f"http://127.0.0.1:{silent.getsockname()[1]}/benchmarks.mat")


def test_the_usual_addresses_are_tried_in_turn(
    server: Server, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = (f"http://127.0.0.1:{closed_port}/", server.url("other"), server.url("gone"))
    monkeypatch.setattr(download, "URLS", urls)
    messages = refused(None)
    assert all(f"{url}: " in messages for url in urls)
    progress = Counter()
    monkeypatch.setattr(download, "URLS", (*urls, server.url("benchmarks.mat"), server.url("never")))
    assert download.fetch(progress=progress).read_bytes() == CONTENT
    assert progress.done == len(CONTENT)
    assert "/never" not in server.asked


@pytest.mark.parametrize(
    "url",
    [
        *("", "benchmarks.mat", "/benchmarks.mat", "http:", "http://", "https:///benchmarks.mat", "http://["),
        *("ftp://127.0.0.1/benchmarks.mat", "sftp://127.0.0.1/x", "doi:10.5281/zenodo.18110/benchmarks.mat"),
        *("http://[::1", "http://127.0.0.1:99999/benchmarks.mat", 3),
    ],
)
def test_only_web_addresses_are_fetched_from(url: Any, cache: Path) -> None:
    messages = refused(url)
    assert f"url={url!r} is not an address to fetch from" in messages
    assert not cache.exists()


def test_a_file_is_no_address_even_if_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.mat").write_bytes(CONTENT)
    assert "https://" in refused((tmp_path / "benchmarks.mat").as_uri())


def test_a_cache_that_cannot_be_written_is_told(server: Server, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"cannot fetch benchmarks\.mat: .*Not a directory"):
        download.fetch(server.url("benchmarks.mat"))
    assert not server.asked


def test_the_public_addresses_name_the_file() -> None:
    assert URLS
    for url in URLS:
        download._check_address(url)
        assert url.startswith("https://")
        assert download.NAME in url


# On the command line


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command in this process: arguments to exit code, standard output and standard error."""

    def call(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["ckcv_paper", *arguments])
        capfd.readouterr()
        try:
            command.app()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *capfd.readouterr())

    return call


def test_help_teaches(paper: Callable[..., Ran]) -> None:
    assert "fetch" in paper("--help")[1]
    shown = paper("fetch", "--help")[1]
    assert "python -m ckcv_paper fetch" in shown
    assert "ckcv run ida:twonorm:37" in shown  # some names of sets would become emoji


def test_the_package_is_the_command() -> None:
    words = [sys.executable, "-m", "ckcv_paper", "fetch", "--url", "file:///ida.mat"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ckcv_paper: url='file:///ida.mat' is not an address to fetch from")
    assert done.stderr.count("\n") == 1


def test_the_command_prints_where_the_file_lies(paper: Callable[..., Ran], server: Server) -> None:
    for _ in range(2):
        code, shown, messages = paper("fetch", "--url", server.url("benchmarks.mat"))
        assert (code, shown) == (0, f"{download.locate()}\n")
        assert "unless CKCV_IDA names another" in messages
        assert messages.count("\n") == 1
    assert len(server.asked) == 1


def test_an_interrupted_command_keeps_nothing(
    paper: Callable[..., Ran], server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.DownloadBar, "update", interrupt)
    code, shown, messages = paper("fetch", "--url", server.url("benchmarks.mat"))
    assert (code, shown) == (130, "")
    assert "interrupted" in messages
    assert not list(download.locate().parent.iterdir())


def test_on_a_terminal_the_bar_fills_and_goes(server: Server) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    with command.DownloadBar(console, "benchmarks.mat") as bar:
        download.fetch(server.url("benchmarks.mat"), bar)
        bar.live.refresh()
    assert bar.done == bar.total == len(CONTENT)
    assert "benchmarks.mat" in screen.getvalue()
    assert "384.0/384.0 kB" in screen.getvalue()


@pytest.mark.parametrize(
    ("path", "last"), [("benchmarks.mat", "0.4 of 0.4 MB"), ("of-unknown-length", "0.4 MB")]
)
def test_elsewhere_plain_lines_are_printed(
    server: Server, monkeypatch: pytest.MonkeyPatch, path: str, last: str
) -> None:
    monkeypatch.setattr(display, "PLAIN_SECONDS", 0.0)
    screen = io.StringIO()
    with command.DownloadBar(Console(file=screen), "benchmarks.mat") as bar:
        download.fetch(server.url(path), bar)
    lines = screen.getvalue().splitlines()
    assert len(lines) > 3
    assert f"benchmarks.mat: {last}" in lines
    assert all(line.startswith("benchmarks.mat: ") for line in lines)
