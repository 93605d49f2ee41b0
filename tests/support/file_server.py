"""A local HTTP server of files that can break connections and ignore Range headers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """Settings and log of the server.

    files: bytes by path.
    cut: number of bytes after which each response breaks off. None: never.
    knows_ranges: False sends the whole file in response to every request.
    asked: (path, Range header) of each request so far.
    """

    files: dict[str, bytes]
    cut: int | None = None
    knows_ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.asked = {}, list[tuple[str, str | None]]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


def length_of(data: bytes) -> str:
    """Return the Content-Length header for a response with this body."""
    return str(len(data))


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.server.asked.append((self.path, wanted))
        data = self.server.files.get(self.path)
        if data is None:
            return self.send_error(404)
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if wanted and self.server.knows_ranges:
            if begin >= len(data):
                return self.send_error(416)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            data = data[begin:]
        else:
            self.send_response(200)
        self.send_header("Content-Length", length_of(data))
        self.end_headers()
        self.wfile.write(data[: self.server.cut])
        return None

    def log_message(self, format: str, *values: object) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[FileServer]:
    """Run a server until the block ends."""
    server = FileServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
