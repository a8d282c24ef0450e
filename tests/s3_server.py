"""A server on loopback that speaks as much S3 as a run folder needs, and fails on request."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

KEY = "Credential=test/"  # of the one who may ask


class S3Server(ThreadingHTTPServer):
    """The server, which asks ``disturb`` at each request for None, a status to answer, or 0 to hang up."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.buckets: dict[str, dict[str, tuple[bytes, str]]] = {}  # objects, with the time they were written
        self.disturb: Callable[[Any], int | None] = lambda request: None
        self.ignores_conditions = False  # else an object is created only if there is none
        self.changing = Lock()
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits for 40 ms
    wbufsize = -1
    server: S3Server

    def log_message(self, *words: Any) -> None:
        """Say nothing."""

    def answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.get("Size", str(len(content))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>swordfish</Message></Error>".encode())

    def handle_one(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        if (status := self.server.disturb(self)) is not None:
            self.close_connection = True
            return self.refuse(status, "Disturbed") if status else self.connection.close()
        if KEY not in self.headers.get("Authorization", ""):
            return self.refuse(403, "InvalidAccessKeyId")
        objects = self.server.buckets.get(bucket)
        if objects is None:
            return self.refuse(404, "NoSuchBucket")
        query = parse_qs(url.query, keep_blank_values=True)
        if not key:
            return self.delete_many(objects, content) if "delete" in query else self.list(objects, query)
        return self.serve_object(objects, key, content)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_one

    def serve_object(self, objects: dict[str, tuple[bytes, str]], key: str, content: bytes) -> None:
        with self.server.changing:
            found = objects.get(key)
            if self.command == "PUT":
                condition = self.headers.get("If-None-Match") == "*" and not self.server.ignores_conditions
                if condition and found is not None:
                    return self.refuse(412, "PreconditionFailed")
                objects[key] = content, formatdate(usegmt=True)
                return self.answer(200, ETag=tag(content))
            if self.command == "DELETE":
                objects.pop(key, None)
                return self.answer(204)
        if found is None:
            return self.refuse(404, "NoSuchKey")
        return self.answer(200, found[0], ETag=tag(found[0]), Last_Modified=found[1])

    def delete_many(self, objects: dict[str, tuple[bytes, str]], content: bytes) -> None:
        keys = [unescape(part.partition("</Key>")[0]) for part in content.decode().split("<Key>")[1:]]
        for key in keys:
            objects.pop(key, None)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def list(self, objects: dict[str, tuple[bytes, str]], query: dict[str, list[str]]) -> None:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        entries, folders = [], set[str]()
        for key in sorted(key for key in list(objects) if key.startswith(prefix)):
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(f"{prefix}{rest.partition(delimiter)[0]}{delimiter}")
            else:
                content, _ = objects[key]
                entries.append(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>{now()}</LastModified><ETag>{tag(content)}"
                    f"</ETag><Size>{len(content)}</Size></Contents>"
                )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        )
        body = (
            f"<ListBucketResult>{''.join(entries)}{common}<IsTruncated>false</IsTruncated></ListBucketResult>"
        )
        self.answer(200, body.encode(), Content_Type="application/xml")


def tag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
