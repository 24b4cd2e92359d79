"""A small static server for the built site: the right media types, gzip, and on request a slow line.

`make serve` uses it to look at the site; the benchmark uses it with a rate and a latency, so that a figure measured
on this machine is that of a visitor's line.
"""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Collection
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".gz": "application/octet-stream",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".whl": "application/octet-stream",
    ".woff2": "font/woff2",
    ".xml": "application/xml",
    ".zip": "application/zip",
}
TEXT_SUFFIXES = frozenset({".css", ".html", ".js", ".json", ".mjs", ".svg", ".txt", ".wasm", ".xml"})
"""What a usual static host compresses."""
_CHUNK = 16 * 1024


class Line(NamedTuple):
    """The visitor's line: bits a second shared by all connections (0: unlimited), seconds of delay a request."""

    bits_per_second: float = 0.0
    latency: float = 0.0


class _Bucket:
    """Hands out sending times so that all connections together keep to a rate."""

    def __init__(self, bits_per_second: float) -> None:
        self._seconds_per_byte = 8 / bits_per_second if bits_per_second else 0.0
        self._free_at = 0.0
        self._lock = threading.Lock()

    def wait(self, size: int) -> None:
        """Sleep until `size` bytes have crossed the line."""
        if not self._seconds_per_byte:
            return
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic()) + size * self._seconds_per_byte
            until = self._free_at
        time.sleep(max(0.0, until - time.monotonic()))


@cache
def _gzipped(path: Path, changed_ns: int) -> bytes:
    del changed_ns  # part of the key only: a rebuilt file is compressed anew
    return gzip.compress(path.read_bytes(), 9, mtime=0)


def is_free(port: int) -> bool:
    """Whether nothing listens at a port of localhost."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


class SiteServer(ThreadingHTTPServer):
    """Serves a folder at `prefix` on a port of localhost; port 0 takes a free one."""

    daemon_threads = True

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        prefix: str = "/",
        line: Line | None = None,
        compressed: Collection[str] = TEXT_SUFFIXES,
        max_age: int = 600,
    ) -> None:
        self.folder = folder.resolve()
        self.prefix = prefix
        self.line = line or Line()
        self.compressed = compressed
        self.max_age = max_age
        self.bucket = _Bucket(self.line.bits_per_second)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """The address of the site's first page."""
        return f"http://localhost:{self.server_address[1]}{self.prefix}"

    def file_of(self, target: str) -> Path | None:
        """The file behind a request target, None when the site has none; a folder stands for its index.html."""
        path = unquote(urlsplit(target).path)
        if not path.startswith(self.prefix):
            return None
        file = (self.folder / path.removeprefix(self.prefix)).resolve()
        if file.is_dir():
            file /= "index.html"
        return file if file.is_relative_to(self.folder) and file.is_file() else None

    def __enter__(self) -> SiteServer:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SiteServer

    def handle(self) -> None:
        """Answer requests until the browser leaves, which it may do at any time."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        file = self.server.file_of(self.path)
        status = HTTPStatus.OK if file else HTTPStatus.NOT_FOUND
        file = file or self._not_found_page()
        time.sleep(self.server.line.latency)
        if file is None:
            self.send_error(status)
            return
        changed = file.stat().st_mtime_ns
        tag = f'"{changed:x}-{file.stat().st_size:x}"'
        if status is HTTPStatus.OK and self.headers.get("If-None-Match") == tag:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self.end_headers()
            return
        zipped = file.suffix in self.server.compressed and "gzip" in self.headers.get("Accept-Encoding", "")
        body = _gzipped(file, changed) if zipped else file.read_bytes()
        self.send_response(status)
        self.send_header("Content-Type", MEDIA_TYPES.get(file.suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(body)))
        age = self.server.max_age if status is HTTPStatus.OK else 0
        self.send_header("Cache-Control", f"max-age={age}")
        self.send_header("ETag", tag)
        if zipped:
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Vary", "Accept-Encoding")
        self.end_headers()
        if with_body:
            self._send(body)

    def _send(self, body: bytes) -> None:
        try:
            for start in range(0, len(body), _CHUNK):
                part = body[start : start + _CHUNK]
                self.server.bucket.wait(len(part))
                self.wfile.write(part)
        except ConnectionError:
            self.close_connection = True

    def _not_found_page(self) -> Path | None:
        page = self.server.folder / "404.html"
        return page if page.is_file() else None

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the browser's own tools show the requests."""
