"""The package with the paper's data: what its download keeps and reports, and what is built."""

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ckcv_paper import download
from ckcv_ray.errors import InputError

URLS = download.URLS
CONTENT = bytes(range(256)) * 1500
DIGEST = hashlib.sha256(CONTENT).hexdigest()
ANSWERS = {  # by path: what it answers, of which length
    "/benchmarks.mat": (CONTENT, len(CONTENT)),
    "/other": (b"another file", 12),
    "/breaks-off": (CONTENT[:100_000], len(CONTENT)),
}


class Handler(BaseHTTPRequestHandler):
    """Answers each path in its own way; its server notes what it was asked."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        body, length = ANSWERS.get(self.path, (b"", 0))
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class Server(HTTPServer):
    asked: list[str]

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
    with Server(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def refused(url: str | None) -> str:
    """The message for an address; it is one line, and nothing is kept."""
    with pytest.raises(InputError) as error:
        download.fetch(url)
    folder = download.locate().parent
    assert not folder.exists() or not list(folder.iterdir())
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_fetched_lies_whole_in_the_cache_and_is_fetched_once(server: Server, cache: Path) -> None:
    for _ in range(2):
        path = download.fetch(server.url("benchmarks.mat"))
        assert path == download.locate()
        assert path.is_relative_to(cache)
        assert path.read_bytes() == CONTENT
    assert download.fetch(server.url("gone")) == path
    assert server.asked == ["/benchmarks.mat"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("other", hashlib.sha256(b"another file").hexdigest()),
        ("nothing-here", "404 Client Error: Not Found"),
        ("breaks-off", "100000 bytes read, 284000 more expected"),
    ],
)
def test_a_download_that_fails_is_told_with_a_way_out(server: Server, path: str, reason: str) -> None:
    messages = refused(server.url(path))
    assert f"{server.url(path)}: " in messages
    assert reason in messages
    assert "Alternatively, download benchmarks.mat" in messages
    assert "set CKCV_IDA to its path" in messages


def test_the_usual_addresses_are_tried_in_turn(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = ("http://127.0.0.1:1/", server.url("other"), server.url("gone"))
    monkeypatch.setattr(download, "URLS", urls)
    messages = refused(None)
    assert all(f"{url}: " in messages for url in urls)
    monkeypatch.setattr(download, "URLS", (*urls, server.url("benchmarks.mat"), server.url("never")))
    assert download.fetch().read_bytes() == CONTENT
    assert "/never" not in server.asked
    assert all(url.startswith("https://") and download.NAME in url for url in URLS)


@pytest.mark.parametrize("url", ["benchmarks.mat", "file:///ida.mat", 3])
def test_only_web_addresses_are_fetched_from(url: Any, cache: Path) -> None:
    assert f"url={url!r} is not an address to fetch from" in refused(url)
    assert not cache.exists()


def test_the_package_is_the_command() -> None:
    words = [sys.executable, "-m", "ckcv_paper", "fetch", "--url", "file:///ida.mat"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ckcv_paper: url='file:///ida.mat' is not an address to fetch from")
