"""Runs that cannot be made end in one line, before anything is written where that can be known."""

import socket
from pathlib import Path

import pytest

from beam_pipelines.pack import main as pack
from beam_pipelines.prepare import main
from beam_pipelines.runners import reach
from beam_pipelines.runners.pipeline import make_pipeline, run_pipeline
from bertdata.cli.main import main as command_line
from bertdata.errors import BertDataError
from tests.support.commands import contents
from tests.support.dump_pages import page
from tests.support.dumps import write_dump
from tests.support.pipelines import SMALL, words


@pytest.fixture
def part(tmp_path: Path) -> Path:
    path = tmp_path / "part.txt"
    path.write_text("A fine line.\nA second one.\n\nMore text here.\n")
    return path


def closed_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def the_error(capfd: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error."""
    (line,) = capfd.readouterr().err.splitlines()
    assert ": error: " in line
    return line


def test_a_part_at_fault_is_one_line_where_workers_are_threads(
    part: Path, small_vocabulary_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    part.write_bytes(b"A fine line.\nB\xff bad.\n")
    flags = (*SMALL, "--direct_running_mode", "multi_threading", "--direct_num_workers", "2")
    assert main(words([part], small_vocabulary_file, tmp_path / "out", *flags)) == 1
    assert "part.txt: line 2: byte 0xff at offset 14 is not UTF-8" in the_error(capfd)


@pytest.mark.parametrize("mode", ["in_memory", "multi_threading", "multi_processing"])
@pytest.mark.parametrize("workers", ["-1", "1000000"])
def test_an_impossible_number_of_local_workers_is_refused(
    part: Path,
    small_vocabulary_file: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    workers: str,
    mode: str,
) -> None:
    flags = (*SMALL, "--direct_running_mode", mode, "--direct_num_workers", workers)
    assert main(words([part], small_vocabulary_file, tmp_path / "out", *flags)) == 2
    assert f"--direct_num_workers {workers}: expected 0" in the_error(capfd)
    assert not (tmp_path / "out").exists()


def test_an_impossible_number_of_dask_workers_is_refused(
    part: Path, small_vocabulary_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = (*SMALL, "--runner", "DaskRunner", "--dask_workers", "1000000")
    assert main(words([part], small_vocabulary_file, tmp_path / "out", *flags)) == 2
    assert "--dask_workers 1000000: expected 1 to" in the_error(capfd)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("runner", "flag", "scheme"),
    [
        ("PortableRunner", "--job_endpoint", ""),
        ("FlinkRunner", "--flink_master", ""),
        ("FlinkRunner", "--flink_master", "http://"),
        ("SparkRunner", "--spark_master_url", "spark://"),
    ],
)
def test_a_runner_whose_server_does_not_answer_is_refused_at_once(
    part: Path,
    small_vocabulary_file: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    runner: str,
    flag: str,
    scheme: str,
) -> None:
    server = f"{scheme}127.0.0.1:{closed_port()}"
    flags = (*SMALL, "--runner", runner, flag, server)
    assert main(words([part], small_vocabulary_file, tmp_path / "out", *flags)) == 2
    assert f"{flag} {server}: no server answers there" in the_error(capfd)
    assert not (tmp_path / "out").exists()


def test_a_job_server_that_does_not_speak_is_refused(
    part: Path,
    small_vocabulary_file: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes connections, and says nothing; and an address without a port is that of nobody."""
    monkeypatch.setattr(reach, "_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for endpoint in (f"127.0.0.1:{silent.getsockname()[1]}", "127.0.0.1:"):
            flags = (*SMALL, "--runner", "PortableRunner", "--job_endpoint", endpoint)
            assert main(words([part], small_vocabulary_file, tmp_path / "out", *flags)) == 2
            assert f"--job_endpoint {endpoint}: no job server answers there" in the_error(capfd)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("runner", ["flink", "spark"])
def test_a_job_server_that_cannot_be_started_is_refused_before_anything_is_listed(
    small_vocabulary_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], runner: str
) -> None:
    jar = tmp_path / "server.jar"
    jar.write_bytes(b"")
    closed = f"http://127.0.0.1:{closed_port()}/server.jar"
    flag = f"--{runner}_job_server_jar"
    cases = {
        "/no/such.jar": f"{flag} /no/such.jar: no such file; or start a job server and give its --job_end",
        closed: f"{flag}: the jar of the job server cannot be fetched from {closed} ([Errno 111]",
        str(jar): "--job_server_java_launcher /no/java: no such program, which runs the job server's jar",
    }
    for path, message in cases.items():
        flags = ("--runner", f"{runner}Runner", flag, path, "--jar_cache_dir", str(tmp_path / "jars"))
        given = words([Path("/no/part")], small_vocabulary_file, tmp_path / "out", *SMALL, *flags)
        assert main([*given, "--job_server_java_launcher", "/no/java"]) == 2
        assert message in the_error(capfd)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "PortableRunner needs --job_endpoint HOST:PORT"),
        (("--job_endpoint", "embed"), "--environment_type is missing, or names no image"),
        (("--job_endpoint", "embed", "--environment_type", "DOCKER"), "--environment_type is missing, or"),
    ],
)
def test_a_portable_runner_without_an_address_or_without_our_package_is_refused(
    small_vocabulary_file: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    message: str,
) -> None:
    given = words([Path("/no/part")], small_vocabulary_file, tmp_path / "out", *SMALL)
    assert main([*given, "--runner", "PortableRunner", *flags]) == 2
    assert message in the_error(capfd)


def test_packing_asks_for_the_runner_before_the_dataset(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert pack(["/no/data", "--output", str(tmp_path / "out"), "--runner", "PortableRunner"]) == 2
    assert "PortableRunner needs --job_endpoint" in the_error(capfd)


def test_a_runner_that_cannot_start_is_one_line(
    part: Path, small_vocabulary_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = ("--runner", "PrismRunner", "--prism_location", "/no/such/prism")
    given = words([part], small_vocabulary_file, tmp_path / "out", *SMALL, *flags)
    assert main(given) == 1
    assert "error: PrismRunner: ValueError: Unable to parse" in the_error(capfd)


@pytest.mark.parametrize("flag", [("--dry_run", "True"), ("--dry_run=true",), ("--dry_run",)])
def test_beams_spelling_of_a_dry_run_writes_nothing(
    part: Path,
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flag: tuple[str, ...],
) -> None:
    given = words([part], small_vocabulary_file, tmp_path / "out", *flag, *SMALL)
    assert main(given) == 0
    assert "nothing was written" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_a_dry_run_that_is_false_is_a_run(part: Path, small_vocabulary_file: Path, tmp_path: Path) -> None:
    assert main(words([part], small_vocabulary_file, tmp_path / "out", "--dry_run", "False", *SMALL)) == 0
    assert (tmp_path / "out" / "manifest.json").exists()


def test_packing_on_beam_does_not_take_a_dry_run_for_a_run(
    part: Path, small_vocabulary_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words([part], small_vocabulary_file, tmp_path / "out", *SMALL)) == 0
    capfd.readouterr()
    assert pack([str(tmp_path / "out"), "--output", str(tmp_path / "packed"), "--dry_run", "True"]) == 2
    assert "--dry_run" in the_error(capfd)
    assert not (tmp_path / "packed").exists()


@pytest.mark.usefixtures("punkt_tables")
def test_a_pattern_of_several_dumps_is_refused_and_the_remedy_works(
    small_vocabulary_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dumps = [
        write_dump(tmp_path / f"h{n}.xml", page(f"T{n}", f"The text of page {n}. It is short.", number=n))
        for n in (1, 2)
    ]
    pattern, flags = tmp_path / "h*.xml", ("--input-kind", "dump", *SMALL)
    assert main(words([pattern], small_vocabulary_file, tmp_path / "out", *flags)) == 2
    line = the_error(capfd)
    assert "--input-kind dump takes one dump, not 2" in line
    assert "h1.xml" in line
    assert "h2.xml" in line
    assert command_line(["extract", str(pattern), "--output", str(tmp_path / "x")]) == 2
    assert "bertdata extract takes one dump, not 2" in the_error(capfd)
    assert not (tmp_path / "x").exists()
    articles = [tmp_path / f"x{n}" for n in (1, 2)]
    for dump, place in zip(dumps, articles, strict=True):
        assert command_line(["extract", str(dump), "--output", str(place), "--date", "2020-01-01"]) == 0
    flags = ("--input-kind", "articles", "--eval-articles", "0", *SMALL)
    assert main(words(articles, small_vocabulary_file, tmp_path / "out", *flags)) == 0
    parts = [data for name, data in contents(tmp_path / "out.text").items() if name.startswith("part")]
    assert parts == [b"\nThe text of page 1.\nIt is short.\n\n\n\nThe text of page 2.\nIt is short.\n\n\n"]


def test_a_pattern_of_one_dump_is_that_dump(tmp_path: Path) -> None:
    write_dump(tmp_path / "h1.xml", page("T", "Its text.", number=1))
    words = ["extract", str(tmp_path / "h*.xml"), "--output", str(tmp_path / "x"), "--date", "2020-01-01"]
    assert command_line(words) == 0
    assert "Its text." in (tmp_path / "x" / "AA" / "wiki_00").read_text()


def test_a_failure_of_a_foreign_runner_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from argparse import Namespace

    flags = Namespace(input=[], output="out", input_kind="parts")
    pipeline = make_pipeline(["--runner", "PrismRunner"], flags)

    def fail(*arguments: object) -> None:
        raise RuntimeError("\nURLError: no route to host\n  more of it\n")

    monkeypatch.setattr(pipeline, "run", fail)
    with pytest.raises(BertDataError, match=r"^PrismRunner: RuntimeError: URLError: no route to host$"):
        run_pipeline(pipeline)
