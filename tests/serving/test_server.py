"""The server itself, by a client on loopback, where Ray Serve is installed."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from services import ROW, SERIAL, make_table

from ckcv_ray import Result, Study, run
from ckcv_ray.serving.answers import Service

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("fastapi") is None, reason="Ray Serve is not installed: extra serve"),
]
START_SECONDS = 300.0
LISTENING, LOOPBACK = (
    "0A",
    {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"},
)


class Server(NamedTuple):
    """A server that was started."""

    process: subprocess.Popen[str]
    url: str
    token: Path
    folder: Path

    def ask(self, path: str, rows: Any = None, **options: Any) -> requests.Response:
        """Send a request with the token: GET, or POST with rows."""
        options = {"headers": {"Authorization": f"Bearer {self.token.read_text()}"}, "timeout": 60} | options
        method = "GET" if rows is None else "POST"
        return requests.request(method, self.url + path, json=rows, **options)


def start(folder: Path, *options: str) -> Server:
    words = [sys.executable, "-m", "ckcv_ray", "serve", str(folder), "--port", "0", *options]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    messages = ""
    while "token: " not in messages:
        line = process.stderr.readline()
        assert line, messages
        messages += line
    url, token = re.findall(r"http://127\.0\.0\.1:\d+", messages), re.findall(r"token: (.*)", messages)
    return Server(process, url[0], Path(token[0]), folder)


def stop(server: Server, number: int = signal.SIGINT) -> int:
    with server.process as process:
        process.send_signal(number)
        process.communicate(timeout=START_SECONDS)
    return process.returncode


def list_processes(session: int) -> list[int]:
    """Return the processes of a session of processes that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, belongs = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended by now
            continue
        if int(belongs) == session and state != "Z":
            found.append(int(folder.name))
    return found


def list_open_ports(processes: list[int]) -> set[str]:
    """Return the addresses that processes listen on, as the system writes them."""
    sockets = set()
    for process in processes:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            try:
                sockets.add(os.readlink(descriptor))
            except OSError:  # closed by now
                continue
    texts = [Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6")]
    lines = [line.split() for text in texts for line in text.splitlines()]
    listen = [line for line in lines if line[3] == LISTENING and f"socket:[{line[9]}]" in sockets]
    return {line[1].partition(":")[0] for line in listen}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("served") / "run"
    study = Study.of(learner="tree", k=3, n_splits=3)
    return run(study, *make_table(), execution=SERIAL, out=folder), folder


@pytest.fixture(scope="module")
def server(made: tuple[Result, Path]) -> Iterator[Server]:
    started = start(made[1])
    yield started
    stop(started)


def test_rows_are_answered_with_the_claim(server: Server, made: tuple[Result, Path]) -> None:
    result, _ = made
    answer = server.ask("/predict", {"rows": [ROW] * 100})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["claim"] == Service(result).describe()["claim"]
    assert {row["member"] for row in answer.json()["predictions"]} == {0, 1, 2}
    assert server.ask("/claim").json() == json.loads(json.dumps(Service(result).describe()))


def test_without_the_token_nothing_is_answered(server: Server) -> None:
    for headers in ({}, {"Authorization": "Bearer " + "0" * 32}):
        answer = server.ask("/predict", {"rows": [ROW]}, headers=headers)
        assert answer.status_code == 401
        assert "the token is missing or wrong" in answer.json()["error"]


def test_what_is_wrong_is_said(server: Server) -> None:
    assert server.ask("/predict", {"rows": []}).status_code == 400
    assert (
        "there are no columns 'dose', 'ward'"
        in server.ask("/predict", {"rows": [{"age": 1}]}).json()["error"]
    )
    assert server.ask("/other").status_code == 404
    many = server.ask("/predict", {"rows": [ROW] * 10_001})
    assert (many.status_code, "at most 10,000" in many.json()["error"]) == (400, True)
    large = server.ask("/predict", {"rows": [ROW | {"x": "a" * (5 << 20)}]})
    assert (large.status_code, "more than 4 MiB" in large.json()["error"]) == (413, True)
    assert server.ask("/claim").status_code == 200


def test_it_listens_on_loopback_alone_and_its_token_is_private(server: Server) -> None:
    assert server.token.stat().st_mode & 0o777 == 0o600
    processes = list_processes(server.process.pid)
    assert len(processes) > 3
    found = list_open_ports(processes)
    assert found
    assert found <= LOOPBACK


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_a_process_left(made: tuple[Result, Path], number: int) -> None:
    files = sorted((file, file.stat().st_mtime_ns) for file in made[1].rglob("*"))
    started = start(made[1], "--vote")
    assert started.ask("/predict", {"rows": [ROW]}).status_code == 200
    assert stop(started, number) == 0
    assert list_processes(started.process.pid) == []
    assert not started.token.exists()
    assert sorted((file, file.stat().st_mtime_ns) for file in made[1].rglob("*")) == files
