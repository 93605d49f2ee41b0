"""In-memory emulators of Google's and Amazon's object stores."""

import io
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pytest

BUCKET = "data"
THIS_MACHINE = "127.0.0.1"

one_store = pytest.mark.parametrize(
    "store", ["gs", pytest.param("s3", marks=pytest.mark.thorough)], indirect=True
)
"""For claims about what lies above the stores' clients: shown on one store, and by thorough tests on both."""


def free_port() -> int:
    """Return a TCP port of this machine that is not in use."""
    with socket.socket() as probe:
        probe.bind((THIS_MACHINE, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def gcs_emulator(address: str = THIS_MACHINE) -> Iterator[dict[str, str]]:
    """Run an emulator that listens at an address.

    Yields the environment variables that make gcsfs use it, in this and other processes.
    """
    from gcp_storage_emulator import server as emulator
    from gcp_storage_emulator.server import create_server

    emulator._read_data = _reading_whole_parts(emulator)
    port = free_port()
    server = create_server(address, port, in_memory=True, default_bucket=BUCKET)
    server._storage._write_config_to_file = lambda: (
        None
    )  # all names as JSON at each change, for another start
    server.start()
    server._api._httpd.handle_error = lambda *_: None  # it prints a traceback when a client has read enough
    try:
        yield {
            "STORAGE_EMULATOR_HOST": f"http://{address}:{port}",
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # it would ask Google what kind of bucket this is
            "NO_GCE_CHECK": "true",
        }
    finally:
        server.stop()


def _reading_whole_parts(emulator: Any) -> Callable[[Any, Any], Any]:
    """Return a corrected version of the emulator's function that reads an upload.

    The emulator parses an upload like an e-mail, in which CR LF ends a line, and gcsfs puts an LF after the
    file. So the emulator's version drops the last byte of a file that ends with CR.
    """
    read = getattr(emulator._read_data, "others", emulator._read_data)

    def read_data(request: Any, query: Any) -> Any:
        kind = request.headers.get("Content-Type") or ""
        boundary = re.fullmatch(r'multipart/related; boundary="(==0==)"', kind)
        if boundary is None:
            return read(request, query)
        body = emulator._decode_raw_data(emulator._read_raw_data(request), request)
        _, meta, content, _ = body.split(b"--" + boundary[1].encode())
        head, _, data = content.partition(b"\n\n")
        return {
            "meta": json.loads(meta.partition(b"\n\n")[2]),
            "content": data[:-1],
            "content-type": head.partition(b":")[2].strip().decode(),
        }

    read_data.others = read  # type: ignore[attr-defined]
    return read_data


@contextmanager
def s3_emulator(address: str = THIS_MACHINE) -> Iterator[dict[str, str]]:
    """Run an emulator that listens at an address.

    Yields the environment variables that make s3fs use it, in this and other processes.
    """
    from moto.moto_server.werkzeug_app import create_backend_app
    from werkzeug.serving import make_server

    store = create_backend_app("s3")
    store.debug = False
    server = make_server(address, 0, store, threaded=True, request_handler=_request_handler())
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://{address}:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "of-a-test",
            "AWS_SECRET_ACCESS_KEY": "of-a-test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _request_handler() -> type:
    """Return a request handler for moto that keeps connections open.

    The handler of moto's server opens a new connection for every response and ends it 10 ms later.
    """
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.test import run_wsgi_app

    class Handler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def run_wsgi(self) -> None:
            environ = self.make_environ()
            environ["wsgi.input"] = io.BytesIO(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            answer, status, headers = run_wsgi_app(self.server.app, environ, buffered=True)
            data = b"".join(answer)
            number, _, words = status.partition(" ")
            self.send_response(int(number), words)
            for name, value in headers:
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def handle_expect_100(self) -> bool:
            answered = super().handle_expect_100()
            self.wfile.flush()
            return answered

        def log_request(self, *_: object) -> None:
            pass

    return Handler


def divided(values: Mapping[str, object]) -> list[Any]:
    """Return pytest parameters that pair each value with a store, alternating between the two stores.

    Thorough tests use both stores for every value. values: by test id.
    """
    cases = []
    for number, (name, value) in enumerate(values.items()):
        for place, scheme in enumerate(("gs", "s3")):
            marks = () if number % 2 == place else pytest.mark.thorough
            cases.append(pytest.param(scheme, value, id=f"{scheme}-{name}", marks=marks))
    return cases


class Store:
    """An initially empty directory of an object store."""

    def __init__(self, scheme: str, name: str) -> None:
        self.scheme = scheme
        self.inner = f"{BUCKET}/{name}"
        self.url = f"{scheme}://{self.inner}"
        self.files = fsspec.filesystem(scheme, use_listings_cache=False)
        if scheme == "s3" and not self.files.exists(BUCKET):
            self.files.mkdir(BUCKET)

    def put(self, name: str, data: bytes) -> str:
        """Upload a file. Returns its URL."""
        self.files.pipe_file(f"{self.inner}/{name}", data)
        return f"{self.url}/{name}"

    def put_files(self, name: str, paths: list[Path]) -> str:
        """Upload the files to a directory. Returns its URL."""
        for path in paths:
            self.put(f"{name}/{path.name}", path.read_bytes())
        return f"{self.url}/{name}"

    def get(self, name: str) -> bytes:
        """Return the contents of a file."""
        data: bytes = self.files.cat_file(f"{self.inner}/{name}")
        return data

    def names(self, name: str = "") -> list[str]:
        """Return the sorted names of all files below the directory, relative to it."""
        root = f"{self.inner}/{name}".rstrip("/")
        return sorted(path[len(root) + 1 :] for path in self.files.find(root))

    def contents(self, name: str) -> dict[str, bytes]:
        """Return the bytes of all files below the directory, by relative name."""
        return {file: self.get(f"{name}/{file}") for file in self.names(name)}

    def remove(self, name: str) -> None:
        self.files.rm_file(f"{self.inner}/{name}")


def clean_environment() -> list[str]:
    """Return the environment variables that could lead a test to somebody's real account."""
    return [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "FSSPEC_"))]


def main() -> None:
    """Run an emulator until standard input ends. Arguments: ``gs`` or ``s3``, and the address to listen at.

    Prints the environment variables that lead to it, as JSON on one line.
    """
    scheme, address = sys.argv[1:]
    with {"gs": gcs_emulator, "s3": s3_emulator}[scheme](address) as variables:
        print(json.dumps(variables), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
