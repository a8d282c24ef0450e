"""The server: one replica on a local Ray, which listens on loopback alone.

The run folder is read once more where requests are answered, by the rules of ``load``: nothing is unpickled,
and only packages that were trusted are imported.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from grpc.aio._server import Server as GrpcServer
from ray import serve
from ray.exceptions import RayError
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse

from ckcv_ray.engine.ray_cluster import LOOPBACK, connect
from ckcv_ray.errors import RunError
from ckcv_ray.learners import register_installed
from ckcv_ray.learners.sklearn import trust
from ckcv_ray.runs.load import load
from ckcv_ray.serving.answers import Service
from ckcv_ray.serving.web import ANSWER_SECONDS, Request, Responder

APPLICATION = "ckcv"
MOST_WAITING = 64  # requests; Ray Serve answers others with status 503
MOST_AT_ONCE = 8  # requests that are read at once
END_SECONDS = 2.0  # for requests that are being answered when the server ends
IDLE_SECONDS = 5  # after which a connection without requests is closed
QUIET = {"log_level": "ERROR", "enable_access_log": False}


class Served(NamedTuple):
    """What a replica serves.

    Attributes:
        folder: run folder, an absolute path.
        run_id: of the run that it has to hold.
        by: as for ``Result.rule``.
        trusted: packages that may be imported for it.
        digest: SHA-256 of the token.
    """

    folder: str
    run_id: str
    by: str
    trusted: tuple[str, ...]
    digest: str


class Replica:
    """Reads the run folder, and answers what Ray Serve passes on."""

    def __init__(self, served: Served) -> None:
        bind_to_loopback()
        register_installed()
        for package in served.trusted:
            trust(package)
        result = load(served.folder)
        if result.run_id != served.run_id:
            raise RunError(f"{served.folder!r} holds another run than when the server was started")
        result.classify(result.task.X[:1], result.rule(served.by))  # compiles what the first answer needs
        self._responder = Responder(Service(result, served.by), served.digest)

    async def __call__(self, request: HttpRequest) -> Any:
        """Answer a request."""
        reply = await self._responder.respond(
            Request(request.method, request.url.path, request.headers, request.stream())
        )
        return JSONResponse(reply.content, reply.status, dict(reply.headers))


def bind_to_loopback() -> None:
    """Let the gRPC servers of this process listen on loopback alone.

    Each replica of Ray Serve has one, which reads pickles; Ray binds it to every interface of the machine.
    """
    for name in ("add_insecure_port", "add_secure_port"):
        add = getattr(GrpcServer, name)
        setattr(GrpcServer, name, _narrow(add))


def _narrow(add: Any) -> Any:
    def add_port(server: Any, address: str, *credentials: Any) -> Any:
        return add(server, f"{LOOPBACK}:{address.rpartition(':')[2]}", *credentials)

    return add_port


@contextmanager
def run_server(served: Served, port: int) -> Iterator[None]:
    """Serve a run at a port of loopback inside the context; its processes have ended afterwards.

    Raises:
        RunError: the server could not start.
    """
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    options = {
        "host": LOOPBACK,
        "port": port,
        "request_timeout_s": ANSWER_SECONDS + END_SECONDS,
        "keep_alive_timeout_s": IDLE_SECONDS,
    }
    deployment = serve.deployment(
        Replica,
        num_replicas=1,
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=MOST_AT_ONCE,
        max_queued_requests=MOST_WAITING,
        graceful_shutdown_timeout_s=END_SECONDS,
        graceful_shutdown_wait_loop_s=END_SECONDS / 4,
    )
    with connect(1, "local"):
        try:
            serve.start(proxy_location="HeadOnly", http_options=options, logging_config=QUIET)
            serve.run(deployment.bind(served), name=APPLICATION, route_prefix="/", logging_config=QUIET)
        except (RuntimeError, RayError, OSError) as error:
            raise RunError(f"the server could not start: {error}") from None
        try:
            yield
        finally:
            serve.delete(APPLICATION)
