"""The Ray cluster that a run uses: join one, or start a local one on loopback, which requires a token."""

import atexit
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import NamedTemporaryFile, mkdtemp
from typing import Any

import ray
from ray.exceptions import RayError

from ckcv_ray.engine.address import reach
from ckcv_ray.errors import InputError

LOOPBACK = "127.0.0.1"
PACKAGE = Path(__file__).resolve().parents[1]


@contextmanager
def connect(workers: int | None, address: str) -> Iterator[None]:
    """Connect to Ray for several backends; a Ray instance started here is shut down at the end."""
    owns = not ray.is_initialized()
    if owns:
        _connect(workers, address)
    try:
        yield
    finally:
        if owns and ray.is_initialized():
            ray.shutdown()


def _connect(workers: int | None, address: str) -> None:
    """Join a cluster, or start a local Ray on loopback; the handler of SIGTERM is restored."""
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    os.environ.setdefault("RAY_task_oom_retries", "0")  # this backend retries, with a limit
    if address == "local":
        options |= {
            "address": "local",
            "num_cpus": workers,
            "include_dashboard": False,
            "_node_ip_address": LOOPBACK,
        }
        if "RAY_AUTH_MODE" not in os.environ:
            os.environ["RAY_AUTH_MODE"] = "token"
            ray._raylet.Config.initialize("")  # read again what Ray read on import
        _secure_token()
    else:
        reach(address)
        options |= {"address": address}
        if not {"site-packages", "dist-packages", "runtime_resources"} & set(PACKAGE.parts):  # a checkout
            options |= {"runtime_env": {"py_modules": [str(PACKAGE)]}}
    try:
        ray.init(**options)
    except (OSError, RuntimeError, RayError) as error:
        raise InputError(f"cannot join or start Ray at address={address!r}: {error}") from None
    if main:
        signal.signal(signal.SIGTERM, handler)


def _secure_token() -> None:
    """Make a token that only its owner can read; Ray would make a world-readable one.

    It is kept where the environment says, else in ~/.ray, else, if that cannot be written, in a temporary
    folder of this process.

    Raises:
        InputError: the temporary folder cannot be written either.
    """
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    home = os.environ.get("HOME") or os.devnull
    try:
        _private_token(Path(home) / ".ray")
    except OSError:  # no home folder, or one that cannot be written
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(_temporary_token())


def _private_token(folder: Path) -> Path:
    """Return the token in a folder, made if missing; both are private for any umask."""
    token = folder / "auth_token"
    folder.mkdir(mode=0o700, exist_ok=True)
    _allow(folder, 0o700)
    if not token.exists():
        with NamedTemporaryFile("w", dir=folder) as file:
            file.write(secrets.token_hex(32))
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, token)
    _allow(token, 0o600)
    with token.open() as file:  # raise here if Ray could not read it
        file.read(1)
    return token


def _allow(path: Path, mode: int) -> None:
    """Set the mode of a path unless it is set already, which also works on a read-only disk."""
    if path.stat().st_mode & 0o777 != mode:
        path.chmod(mode)


@cache
def _temporary_token() -> Path:
    """Make a token in a private temporary folder, which is removed at exit."""
    try:
        folder = mkdtemp(prefix="ckcv-ray-")
        atexit.register(_remove, folder, os.getpid())
        return _private_token(Path(folder))
    except OSError as error:
        raise InputError(
            f"HOME={os.environ.get('HOME')!r} cannot keep the token of a local Ray, nor can the "
            f"temporary folder ({error}): set HOME or TMPDIR to a folder that can be written, or use the "
            "serial backend"
        ) from None


def _remove(folder: str, process: int) -> None:
    """Remove a folder, but not in a forked child of the process that made it."""
    if os.getpid() == process:
        rmtree(folder, ignore_errors=True)
