"""A Dataflow job is built and staged in full against an emulated storage, up to the request that starts it.

The service itself is a local server that takes the request down, and then reports a failed job.
"""

import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from apache_beam.portability.api import beam_runner_api_pb2
from gcp_storage_emulator.server import create_server
from google.api_core.exceptions import Forbidden
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from beam_pipelines.prepare import main
from beam_pipelines.report.errors import find_original_error
from tests.support.paths import DUMP, ROOT

PLACES = ("--output", "gs://bucket/out", "--vocab", "gs://bucket/vocab.txt")
JOB = ("--runner", "DataflowRunner", "--project", "p", "--region", "europe-west4")
FAULT = "gs://bucket/in/part-1: line 3: byte 0xff at offset 26 is not UTF-8"


@dataclass
class Service:
    """The Dataflow service's part: requests taken down, and a job that fails in a worker."""

    address: str = ""
    requests: list[tuple[str, str, Any]] = field(default_factory=list)

    def answer(self, verb: str, path: str, body: bytes) -> dict[str, Any]:
        path = path.split("?")[0]
        self.requests.append((verb, path, json.loads(body) if body else None))
        if path.endswith("/messages"):
            traceback = f"Traceback (most recent call last):\n  ...\nbertdata.errors.InputError: {FAULT}\n"
            importance = {"messageImportance": "JOB_MESSAGE_ERROR", "messageText": traceback}
            return {"jobMessages": [{"id": "1", "time": "2026-01-01T00:00:00Z", **importance}]}
        state = "JOB_STATE_PENDING" if verb == "POST" else "JOB_STATE_FAILED"
        return {"id": "job-1", "projectId": "p", "name": "n", "currentState": state}


@pytest.fixture
def service() -> Iterator[Service]:
    heard = Service()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = json.dumps(heard.answer(self.command, self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    heard.address = f"http://localhost:{server.server_port}"
    yield heard
    server.shutdown()
    server.server_close()


@pytest.fixture
def bucket(corpus: list[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[storage.Bucket]:
    """An emulated bucket that holds two parts and a vocabulary, and that this process's children see."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    server = create_server("localhost", port, in_memory=True, default_bucket="bucket")
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://localhost:{port}")
    monkeypatch.setenv("FSSPEC_GS_TOKEN", "anon")
    monkeypatch.setenv("FSSPEC_GCS_TOKEN", "anon")
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # asks a service that is not emulated
    made = storage.Client(project="p", credentials=AnonymousCredentials()).bucket("bucket")
    for number, part in enumerate(corpus[:2]):
        made.blob(f"in/part-{number}").upload_from_string(part.read_bytes())
    made.blob("vocab.txt").upload_from_string((ROOT / "golden" / "vocab.txt").read_bytes())
    yield made
    server.stop()


def run_job(service: Service, *words: str) -> subprocess.CompletedProcess[str]:
    """The pipeline's program with a job of our sources, run to its end."""
    flags = [*PLACES, *JOB, "--temp_location", "gs://bucket/tmp"]
    flags += ["--setup_file", "./setup.py", "--requirements_file", "tools/worker-requirements.txt"]
    flags += ["--requirements_cache", "skip", "--engine", "native"]
    flags += ["--sdk_container_image", "registry/bertdata:1", "--max_num_workers", "7"]
    flags += ["--no_auth", "--dataflow_endpoint", service.address]
    return subprocess.run(
        [sys.executable, "-m", "beam_pipelines.prepare", *words, *flags],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def stages(bucket: storage.Bucket) -> set[str]:
    """The labels of the job's stages."""
    (blob,) = (blob for blob in bucket.list_blobs(prefix="tmp/") if blob.name.endswith("/pipeline.pb"))
    pipeline = beam_runner_api_pb2.Pipeline.FromString(blob.download_as_bytes())
    return {transform.unique_name for transform in pipeline.components.transforms.values()}


@pytest.mark.thorough
def test_a_dump_in_a_bucket_is_a_job_like_others(bucket: storage.Bucket, service: Service) -> None:
    bucket.blob(f"in/{DUMP.name}").upload_from_string(DUMP.read_bytes())
    run = run_job(service, "--input", f"gs://bucket/in/{DUMP.name}", "--input-kind", "dump", "--templates")
    assert {
        "extract dump/first pass/collect definitions",
        "extract dump/extract range",
        "extract dump/write articles",
        "extract dump/write manifest of the articles",
    } <= stages(bucket)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == f"beam_pipelines.prepare: error: {FAULT}"
    plan = json.loads(bucket.blob("out.text/extracted/unfinished/plan.json").download_as_bytes())
    assert (plan["dump"], plan["kind"]) == (DUMP.name, "articles")


@pytest.mark.thorough
def test_a_job_is_staged_with_our_sources_and_its_failure_is_told_in_one_line(
    bucket: storage.Bucket, service: Service
) -> None:
    run = run_job(service, "--input", "gs://bucket/in/part-*")

    staged = {blob.name.rsplit("/", 1)[-1]: blob for blob in bucket.list_blobs(prefix="tmp/")}
    assert {"pipeline.pb", "workflow.tar.gz", "requirements.txt"} <= set(staged)
    check_package(staged["workflow.tar.gz"].download_as_bytes())
    assert (
        staged["requirements.txt"].download_as_bytes()
        == (ROOT / "tools" / "worker-requirements.txt").read_bytes()
    )
    names = stages(bucket)
    assert {"list parts", "make shards/make shards of a part", "write manifests/write manifest"} <= names

    verb, path, job = service.requests[0]
    assert (verb, path) == ("POST", "/v1b3/projects/p/locations/europe-west4/jobs")
    (pool,) = job["environment"]["workerPools"]
    assert pool["sdkHarnessContainerImages"][0]["containerImage"] == "registry/bertdata:1"
    assert pool["autoscalingSettings"]["maxNumWorkers"] == 7
    packages = {package["name"]: package["location"] for package in pool["packages"]}
    assert packages["workflow.tar.gz"].endswith(staged["workflow.tar.gz"].name)
    options = job["environment"]["sdkPipelineOptions"]["options"]
    assert options["pipelineUrl"].endswith(staged["pipeline.pb"].name)

    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert run.stderr.splitlines()[-1] == f"beam_pipelines.prepare: error: {FAULT}"
    assert json.loads(bucket.blob("out/unfinished/plan.json").download_as_bytes())["inputs"] == [
        "part-0",
        "part-1",
    ]


def check_package(data: bytes) -> None:
    """It holds all that a worker compiles, reads and imports, and none of the tests."""
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    sources = ("*.py", "*.h", "*.cpp", "*.tsv", "*.json")
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package in ("bertdata", "beam_pipelines", "schemas", "trainer")
        for pattern in sources
        for path in (ROOT / package).rglob(pattern)
    }
    assert {"bertdata/_native/binding.cpp", "bertdata/_native/shards/crc32c.h"} < wanted
    assert wanted | {"setup.py", "pyproject.toml", "README.md", "LICENSE"} <= names
    assert not [name for name in names if name.startswith(("tests/", "golden/")) or name.endswith(".so")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--input", "LOCAL", *PLACES), "--input LOCAL: is on this machine"),
        (("--input", "memory://in/part-0", "--output", "OUT", *PLACES[2:]), "--output OUT: is on this"),
        (
            ("--input", "memory://in/part-0", "--input-kind", "dump", *PLACES, "--text", "TEXT"),
            "--text TEXT: is on this machine",
        ),
        (
            ("--input", "LOCAL", *PLACES, "--no_wait_until_finish"),
            "--no_wait_until_finish: this command waits",
        ),
    ],
)
def test_what_dataflow_s_workers_could_not_do_is_refused_before_anything_is_made(
    corpus: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    names = {"LOCAL": str(corpus[0]), "OUT": str(tmp_path / "o"), "TEXT": str(tmp_path / "t")}
    remote = {"gs://bucket/out": "memory://out", "gs://bucket/vocab.txt": "memory://vocab.txt"}
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/vocab.txt", (ROOT / "golden" / "vocab.txt").read_bytes())
    memory.pipe("/in/part-0", b"A line.\n")
    arguments = [names.get(word, remote.get(word, word)) for word in words]
    for short, long in names.items():
        message = message.replace(f" {short}:", f" {long}:")
    assert main([*arguments, *JOB]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("beam_pipelines.prepare: error: ")
    assert message in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--temp_location is missing: give a directory of a bucket of yours"),
        (("--temp_location", "/tmp/x"), "--temp_location /tmp/x: expected a directory of a bucket"),
        (("--temp_location", "gs://bucket/tmp"), "--setup_file is missing, and so is --sdk_container_image"),
    ],
)
def test_a_job_whose_workers_would_lack_our_package_or_a_place_is_refused_before_anything_is_listed(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], message: str
) -> None:
    """The bucket is asked for nothing: there is none."""
    assert main(["--input", "gs://bucket/in/part-*", *PLACES, *JOB, *flags]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"beam_pipelines.prepare: error: {message}")


def test_a_refusal_of_the_service_is_one_line() -> None:
    found = find_original_error(Forbidden("POST https://dataflow/jobs:\n denied"))
    assert str(found) == "Google Cloud refuses: 403 POST https://dataflow/jobs: denied"
