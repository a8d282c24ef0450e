"""Command serve."""

import signal
import socket
import threading
from importlib.util import find_spec
from os import strerror
from typing import Annotated

import typer

from ckcv_ray.cli.options import Folder, with_options
from ckcv_ray.cli.output import say
from ckcv_ray.cli.predict import choose_rule
from ckcv_ray.cli.signals import Signals
from ckcv_ray.engine.backend import stay_on_loopback
from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn.spec import list_trusted
from ckcv_ray.runs.load import load
from ckcv_ray.serving.token import make_token
from ckcv_ray.storage.places import locate

RAY_SERVE = (
    "ray[serve]>=2.60,<3"  # what to install: earlier versions read pickles from anybody who can connect
)
NEEDED = ("ray", "fastapi", "uvicorn")  # looked for before anything is read, since importing it takes long
HOST = "127.0.0.1"
SIGNAL_SECONDS = 0.2


@with_options(choice=choose_rule)
def serve(
    folder: Folder,
    choice: tuple[str, int | None],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")
    ] = 8000,
) -> None:
    """Answer rows over HTTP on this machine, with what is proven of each prediction.

    Listens on 127.0.0.1 alone until Ctrl-C, and asks for a token, which is new each time: the file that holds
    it is named at the start. Needs Ray Serve, the extra serve. As for predict, nothing is unpickled, and a
    member of F* that is drawn is drawn for each row.

        ckcv serve runs/patients
        curl -H "Authorization: Bearer $(cat FILE)" http://127.0.0.1:8000/claim

    GET /claim says what is proven, what voids it, and which columns rows need. POST /predict with
    {"rows": [{"age": 61, "dose": 2.5}]} answers rows: prediction, member, score and share as predict writes
    them, and probabilities where the model has them. An error is an object with its sentence. A request has
    at most 10,000 rows and 4 MiB, and 30 s.
    """
    by, seed = choice
    if seed is not None:
        raise InputError(
            "seed repeats the draws of one prediction, and a server draws for each row: leave it out"
        )
    lacking = InputError(
        "ckcv serve needs Ray Serve, which is not installed: install the extra serve, or pip install "
        f"'{RAY_SERVE}'"
    )
    if not all(map(find_spec, NEEDED)):
        raise lacking
    result = load(folder)
    claim = result.claim_for(result.rule(by))
    port = find_port(port)
    stay_on_loopback()
    try:
        from ckcv_ray.serving.ray_serve import Served, run_server
    except ImportError:  # of what Ray Serve needs itself
        raise lacking from None
    try:
        with Signals("stopping the server") as signals, make_token() as token:
            served = Served(locate("folder", folder), result.run_id, by, tuple(list_trusted()), token.digest)
            with run_server(served, port):
                say(f"serving {folder} at http://{HOST}:{port} until Ctrl-C")
                say(f"token: {token.file}")
                say(claim)
                while not signals.stop():
                    threading.Event().wait(SIGNAL_SECONDS)
    except KeyboardInterrupt:
        raise typer.Exit(128 + signal.SIGINT) from None


def find_port(port: int) -> int:
    """Return a port of loopback that can be listened on: the one asked for, or for 0 any that is free.

    Raises:
        InputError: another program listens on it, or it may not be listened on.
    """
    try:
        with socket.create_server((HOST, port)) as server:
            return int(server.getsockname()[1])
    except OSError as error:
        reason = strerror(error.errno or 0)  # its own text has the address again
        raise InputError(
            f"port={port} cannot be listened on ({reason}): choose another, or 0 for any that is free"
        ) from None
