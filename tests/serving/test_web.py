"""Requests and their answers, without a server: the token, paths, limits, and errors as JSON."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from services import ROW, make_result

from ckcv_ray.errors import InputError, RunError
from ckcv_ray.serving import web
from ckcv_ray.serving.answers import Service
from ckcv_ray.serving.token import has_token, make_token
from ckcv_ray.serving.web import MOST_BYTES, MOST_DISCARDED, Reply, Request, Responder

SERVICE = Service(make_result(), "vote")
BODY = json.dumps({"rows": [ROW]}).encode()


async def give(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def ask(
    path: str,
    *parts: bytes,
    method: str = "POST",
    token: str | None = None,
    service: Any = SERVICE,
    seconds: float = 60.0,
    **headers: str,
) -> Reply:
    """Send a request to a responder of its own, with its token unless another is given."""
    with make_token() as made:
        given = made.file.read_text() if token is None else token
        headers = {"authorization": f"Bearer {given}"} | {n.replace("_", "-"): v for n, v in headers.items()}
        responder = Responder(service, made.digest, seconds)
        return asyncio.run(responder.respond(Request(method, path, headers, give(parts))))


def test_rows_are_answered() -> None:
    reply = ask("/predict", BODY[:7], BODY[7:])
    assert (reply.status, reply.headers) == (200, {})
    assert reply.content == SERVICE.predict({"rows": [ROW]})


def test_the_claim_is_answered() -> None:
    assert ask("/claim", method="GET") == Reply(200, SERVICE.describe())


@pytest.mark.parametrize("path", ["/claim", "/predict", "/other"])
@pytest.mark.parametrize("token", ["", "0" * 32])
def test_nothing_is_answered_without_the_token(path: str, token: str) -> None:
    reply = ask(path, BODY, token=token)
    assert reply.status == 401
    assert reply.headers == {"WWW-Authenticate": "Bearer"}
    assert reply.content == {
        "error": "the token is missing or wrong: send the header Authorization: Bearer TOKEN, with the token "
        "in the file that ckcv serve named when it started"
    }


REFUSED = {
    ("/other", "GET"): (404, "there is no '/other': there are GET /claim and POST /predict"),
    ("/predict", "GET"): (405, "/predict is for POST, not 'GET'"),
    ("/claim", "DELETE"): (405, "/claim is for GET, not 'DELETE'"),
}


@pytest.mark.parametrize(("asked", "expected"), REFUSED.items(), ids=str)
def test_other_paths_and_methods_are_refused(asked: tuple[str, str], expected: tuple[int, str]) -> None:
    path, method = asked
    reply = ask(path, BODY, method=method)
    assert (reply.status, reply.content["error"]) == expected


def test_errors_have_the_sentences_of_the_command_line() -> None:
    reply = ask("/predict", b'{"rows": [{"age": 1}]}')
    assert reply.status == 400
    assert reply.content == {"error": "there are no columns 'dose', 'ward': the columns are age"}


def test_a_body_is_limited_and_the_rest_of_it_is_read() -> None:
    part = b" " * (1 << 20)
    assert ask("/predict", *[part] * 3, BODY).status == 200
    left = iter([part] * 6)
    reply = ask("/predict", *left)
    assert reply.status == 413
    assert reply.content == {
        "error": "the request has more than 4 MiB: send the rows in parts, a request for each"
    }
    assert ask("/predict", b" " * MOST_BYTES, BODY).status == 413


def test_what_is_much_too_large_is_refused_at_once() -> None:
    async def refuse() -> AsyncIterator[bytes]:
        yield b" " * (MOST_DISCARDED + 1)
        raise AssertionError("nothing more is read")

    with make_token() as made:
        headers = {"authorization": f"bearer {made.file.read_text()}"}
        request = Request("POST", "/predict", headers, refuse())
        assert asyncio.run(Responder(SERVICE, made.digest).respond(request)).status == 413
    assert ask("/predict", content_length="9" * 18).status == 413
    assert ask("/predict", BODY, content_length="many").status == 200


class Failing:
    """A service that fails."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def describe(self) -> dict[str, Any]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (
            RunError("the model of split 3 predicts class number 7"),
            500,
            "the model of split 3 predicts class",
        ),
        (MemoryError(), 413, "it needs more memory than there is: send fewer rows"),
        (ZeroDivisionError("secret"), 500, "the server could not answer: its log says why"),
    ],
)
def test_what_fails_is_answered_in_a_sentence(
    error: BaseException, status: int, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    reply = ask("/claim", method="GET", service=Failing(error))
    assert reply.status == status
    assert reply.content["error"].startswith(sentence)
    assert ("secret" in caplog.text) == isinstance(error, ZeroDivisionError)


def test_who_sends_slowly_or_asks_for_much_has_a_limit_of_time() -> None:
    async def never() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    with make_token() as made:
        headers = {"authorization": f"Bearer {made.file.read_text()}"}
        request = Request("POST", "/predict", headers, never())
        reply = asyncio.run(Responder(SERVICE, made.digest, 0.01).respond(request))
    expected = "not answered within 0.01 s: send fewer rows, or try again later"
    assert reply == Reply(408, {"error": expected})

    class Slow:
        ended = threading.Event()

        def describe(self) -> dict[str, Any]:
            self.ended.wait(10)
            return {}

    async def ask_slowly() -> Reply:
        with make_token() as made:
            headers = {"authorization": f"Bearer {made.file.read_text()}"}
            responder = Responder(Slow(), made.digest, 0.01)  # type: ignore[arg-type]
            try:
                return await responder.respond(Request("GET", "/claim", headers, give([])))
            finally:
                Slow.ended.set()

    assert asyncio.run(ask_slowly()).status == 408


def test_a_token_is_new_private_and_removed() -> None:
    with make_token() as first, make_token() as second:
        texts = [made.file.read_text() for made in (first, second)]
        assert all(len(text) == 32 and set(text) <= set("0123456789abcdef") for text in texts)
        assert texts[0] != texts[1]
        assert first.file.stat().st_mode & 0o777 == 0o600
        assert first.file.parent.stat().st_mode & 0o777 == 0o700
        assert has_token(f"Bearer {texts[0]}", first.digest)
        assert not has_token(f"Bearer {texts[0]}", second.digest)
        assert not has_token(f"Basic {texts[0]}", first.digest)
        assert not has_token(texts[0], first.digest)
        assert not has_token("Bearer \N{SNOWMAN}", first.digest)
    assert not first.file.parent.exists()


def test_where_no_token_can_be_kept_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(prefix: str) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ckcv_ray.serving.token.mkdtemp", refuse)
    with pytest.raises(InputError) as refused, make_token():
        pass
    assert str(refused.value) == (
        "the token of the server cannot be kept in the temporary folder ([Errno 13] Permission denied): set "
        "TMPDIR to a folder that can be written"
    )


def test_limits_are_said_in_help() -> None:
    """The help of ckcv serve has them in figures."""
    from ckcv_ray.cli.serve import serve
    from ckcv_ray.serving.answers import ROWS_AT_ONCE

    said = f"at most {ROWS_AT_ONCE:,} rows and {MOST_BYTES >> 20} MiB, and {web.ANSWER_SECONDS:g} s"
    assert said in " ".join((serve.__doc__ or "").split())
