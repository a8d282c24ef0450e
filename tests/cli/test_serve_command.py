"""The command serve, but for Ray Serve itself: what is refused, what is printed, and how it ends."""

import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from command import Command

from ckcv_ray import load_run, trust
from ckcv_ray.cli import serve as command
from ckcv_ray.learners.sklearn.spec import list_trusted


class Served(NamedTuple):
    folder: str
    run_id: str
    by: str
    trusted: tuple[str, ...]
    digest: str


class Stand(ModuleType):
    """A stand-in for the module that runs Ray Serve: its server gets a signal as soon as it has started."""

    Served = Served

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__("ckcv_ray.serving.ray_serve")
        self.number, self.served, self.ports, self.ended = number, list[Served](), list[int](), 0

    @contextmanager
    def run_server(self, served: Served, port: int) -> Iterator[None]:
        self.served.append(served)
        self.ports.append(port)
        signal.raise_signal(self.number)
        try:
            yield
        finally:
            self.ended += 1


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    made = Stand()
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr(command, "find_spec", lambda name: True)
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    return made


def test_it_says_where_it_serves_and_ends_at_a_signal(
    ckcv: Command, finished: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust("trusted_package")
    code, shown, messages = ckcv("serve", finished, "--port", "0", "--vote")
    assert (code, shown, stand.ended) == (0, "", 1)
    (served,), (port,) = stand.served, stand.ports
    assert f"serving {finished} at http://127.0.0.1:{port} until Ctrl-C" in messages
    (token,) = re.findall(r"token: (.*)", messages)
    assert not Path(token).parent.exists()
    result = load_run(finished)
    assert result.claim_for(result.rule("vote")) in messages
    assert "stopping the server (repeat to stop at once)" in messages
    assert served[:3] == (str(finished.resolve()), result.run_id, "vote")
    assert "trusted_package" in served.trusted
    assert list(served.trusted) == list_trusted()


def test_a_second_signal_ends_it_at_once(
    ckcv: Command, finished: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.Signals, "stop", interrupt)
    assert ckcv("serve", finished, "--port", "0")[0] == 130
    assert stand.ended == 1


def test_a_port_that_is_taken_is_refused(ckcv: Command, finished: Path, stand: Stand) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, _, messages = ckcv("serve", finished, "--port", port)
    assert code == 2
    assert messages == (
        f"ckcv: --port {port} cannot be listened on (Address already in use): choose another, or 0 for any "
        "that is free\n"
    )
    assert stand.served == []


def test_a_seed_is_refused(ckcv: Command, finished: Path) -> None:
    code, _, messages = ckcv("serve", finished, "--seed", "1")
    assert code == 2
    assert messages == (
        "ckcv: seed repeats the draws of one prediction, and a server draws for each row: leave it out\n"
    )


def test_what_cannot_be_served_is_refused(
    ckcv: Command, finished: Path, tmp_path: Path, stand: Stand
) -> None:
    code, _, messages = ckcv("serve", tmp_path / "none", "--port", "0")
    assert (code, "holds no run" in messages) == (4, True)
    (finished / "certificate.json").write_text("{}")
    assert ckcv("serve", finished, "--port", "0")[0] == 4
    assert stand.served == []


NEEDS = (
    "ckcv: ckcv serve needs Ray Serve, which is not installed: install the extra serve, or pip install "
    f"'{command.RAY_SERVE}'\n"
)


def test_without_ray_serve_a_sentence_names_the_extra(
    ckcv: Command, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "fastapi" else True)
    assert ckcv("serve", finished) == (2, "", NEEDS)
    assert f'    "{command.RAY_SERVE}",\n' in (Path(__file__).parents[2] / "pyproject.toml").read_text()


def test_what_ray_serve_needs_itself_is_missed_in_the_same_words(
    ckcv: Command, finished: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, stand.__name__, None)  # an import of it raises ImportError
    assert ckcv("serve", finished, "--port", "0") == (2, "", NEEDS)
