"""Requests and their answers, whichever server receives them: paths, token, limits, and errors as JSON.

``GET /claim`` says what is proven and which columns rows need; ``POST /predict`` answers rows. Every request
needs the header ``Authorization: Bearer TOKEN``.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from ckcv_ray.errors import CKCVError, InputError
from ckcv_ray.serving.answers import Service, parse_json
from ckcv_ray.serving.token import has_token

MOST_BYTES = 4 << 20  # of the body of a request
MOST_DISCARDED = 8 * MOST_BYTES  # of a body that is too large: clients that are still sending hear no answer
ANSWER_SECONDS = 30.0  # in which a request is answered, its body included
PATHS = {"/claim": "GET", "/predict": "POST"}  # and the method of each
logger = logging.getLogger(__name__)


class Request(NamedTuple):
    """A request.

    Attributes:
        method, path: such as POST and /predict.
        headers: by name, in small letters.
        body: its body, in parts.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]


class Reply(NamedTuple):
    """The answer to a request: status, headers and JSON values."""

    status: int
    content: dict[str, Any]
    headers: Mapping[str, str] = {}


class RefusedError(InputError):
    """A request that is refused before its rows are read.

    Args:
        status: of the answer.
        message: why, and what mends it.
        headers: of the answer.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] = {}) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class Responder:
    """Answers requests about one service, one prediction at a time.

    Args:
        service: what is served.
        digest: SHA-256 of the token that requests need.
        seconds: in which a request has to be answered.
    """

    def __init__(self, service: Service, digest: str, seconds: float = ANSWER_SECONDS) -> None:
        self._service, self._digest, self._seconds = service, digest, seconds
        self._thread = ThreadPoolExecutor(1)

    async def respond(self, request: Request) -> Reply:
        """Answer a request; whatever is wrong becomes an answer with its sentence as ``error``."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._respond(request)
        except RefusedError as error:
            return Reply(error.status, {"error": str(error)}, error.headers)
        except InputError as error:
            return Reply(400, {"error": str(error)})
        except TimeoutError:
            return Reply(
                408,
                {"error": f"not answered within {self._seconds:g} s: send fewer rows, or try again later"},
            )
        except CKCVError as error:
            return Reply(500, {"error": str(error)})
        except MemoryError:
            return Reply(413, {"error": "it needs more memory than there is: send fewer rows"})
        except Exception:
            logger.exception("a request could not be answered")
            return Reply(500, {"error": "the server could not answer: its log says why"})

    async def _respond(self, request: Request) -> Reply:
        """Answer a request.

        Raises:
            RefusedError: the token is missing, there is no such path, or the body is too large.
            InputError: the rows cannot be answered.
        """
        _check_request(request, self._digest)
        if request.path == "/claim":
            return await self._call(self._service.describe)
        body = await _read_body(request)
        return await self._call(partial(_answer, self._service, body))

    async def _call(self, compute: Any) -> Reply:
        """Compute an answer in the thread of answers, so that other requests are still read."""
        return Reply(200, await asyncio.get_running_loop().run_in_executor(self._thread, compute))


def _answer(service: Service, body: bytes) -> dict[str, Any]:
    return service.predict(parse_json(body))


def _check_request(request: Request, digest: str) -> None:
    """Raise RefusedError unless a request has the token, and names a path by its method."""
    if not has_token(request.headers.get("authorization", ""), digest):
        raise RefusedError(
            401,
            "the token is missing or wrong: send the header Authorization: Bearer TOKEN, with the token in "
            "the file that ckcv serve named when it started",
            {"WWW-Authenticate": "Bearer"},
        )
    if request.path not in PATHS:
        listed = " and ".join(f"{method} {path}" for path, method in PATHS.items())
        raise RefusedError(404, f"there is no {request.path[:100]!r}: there are {listed}")
    if (method := PATHS[request.path]) != request.method:
        raise RefusedError(
            405, f"{request.path} is for {method}, not {request.method[:20]!r}", {"Allow": method}
        )


async def _read_body(request: Request) -> bytes:
    """Return the body of a request; of one that is too large the rest is read, so that the client listens.

    Raises:
        RefusedError: it has more bytes than ``MOST_BYTES``; at once if it has many more, or says so.
    """
    declared = request.headers.get("content-length", "")
    _check_bytes(int(declared) if declared.isascii() and declared.isdigit() else 0, MOST_DISCARDED)
    parts, size = [], 0
    async for part in request.body:
        _check_bytes(size := size + len(part), MOST_DISCARDED)
        if size <= MOST_BYTES:
            parts.append(part)
    _check_bytes(size, MOST_BYTES)
    return b"".join(parts)


def _check_bytes(size: int, most: int) -> None:
    if size > most:
        raise RefusedError(
            413,
            f"the request has more than {MOST_BYTES >> 20} MiB: send the rows in parts, a request for each",
        )
