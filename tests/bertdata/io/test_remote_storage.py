"""Object stores, Google's and Amazon's: the bytes of local files, whole or not at all, and clear errors."""

import bz2
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import fsspec
import pytest

from bertdata.build.plan import choose_settings, plan_targets
from bertdata.build.shard_task import TaskPlan, run_task
from bertdata.dataset.manifest import format_summary
from bertdata.errors import AssetError, MissingExtraError, MissingInputError, StorageError
from bertdata.io import storage
from bertdata.io.punkt_assets import PUNKT_ASSETS
from bertdata.text.load_splitter import LoadSplitter
from tests.support.commands import SMALL, Program, contents, finish, start
from tests.support.dumps import page, write_dump
from tests.support.object_stores import Store, divided, free_port, one_store
from tests.support.paths import EXTRACTED, ROOT
from tests.support.tokenizer_files import vocabulary_file

LARGE = bytes(range(256)) * (20 << 12)
"""20 MiB: more than one piece of any upload."""


@pytest.fixture
def text(store: Store, corpus: list[Path], small_vocabulary_file: Path) -> list[str]:
    """The words of a ``create`` whose parts and vocabulary are remote."""
    parts = store.put_files("text", corpus)
    vocabulary = store.put("vocab.txt", small_vocabulary_file.read_bytes())
    return ["create", f"{parts}/part-*", "--vocab", vocabulary]


@pytest.fixture
def local(corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path) -> "LocalDatasets":
    return LocalDatasets(corpus, small_vocabulary_file, tmp_path)


class LocalDatasets:
    """The files of ``create`` on this machine."""

    def __init__(self, parts: list[Path], vocabulary: Path, place: Path) -> None:
        self._words = ["create", *map(str, parts), "--vocab", str(vocabulary)]
        self._place = place / "local"

    def made(self, bertdata: Program, *flags: str) -> dict[str, bytes]:
        assert bertdata(*self._words, "--output", self._place, *flags).status == 0
        return contents(self._place)


@pytest.mark.parametrize(
    ("store", "container"),
    divided({name: name for name in ("tfrecord", "hdf5", "parquet")}),
    indirect=["store"],
)
def test_create_makes_the_bytes_of_a_local_run(store, text, local, bertdata, container):
    flags = (*SMALL, f"--format={container}")
    expected = local.made(bertdata, *flags)
    made = bertdata(*text, "--output", f"{store.url}/out", *flags)
    assert made.status == 0, made.err
    assert store.contents("out") == expected


@one_store
def test_both_phases_are_made(store, text, local, bertdata):
    flags = ("--recipe=habana", "--dupe-factor=1", "--workers=1")
    expected = local.made(bertdata, *flags)
    assert bertdata(*text, "--output", f"{store.url}/out/", *flags).status == 0
    assert store.contents("out") == expected
    assert {"phase1/manifest.json", "phase2/MD5SUMS"} < set(expected)


@pytest.mark.thorough
@one_store
def test_worker_processes_make_the_same_bytes(store, text, local, bertdata):
    expected = local.made(bertdata, *SMALL)
    made = finish(start(*text, "--output", f"{store.url}/out", *SMALL, "--workers=2"))
    assert made.status == 0, made.err
    assert store.contents("out") == expected


@one_store
def test_the_tools_read_and_write_object_stores(store, text, local, bertdata, tmp_path):
    expected = local.made(bertdata, *SMALL)
    out, shard = f"{store.url}/out", "part-00000-of-00003.tfrecord"
    assert bertdata(*text, "--output", out, *SMALL).status == 0
    assert bertdata("verify-md5", out).out == f"{out}: 3 files right, sound\n"
    assert bertdata("verify-md5", f"{out}/MD5SUMS", "--content").status == 0
    sums = bertdata("md5", f"{out}/*.tfrecord").out.replace(f"{out}/", "")
    lines = expected["MD5SUMS"].decode().splitlines(keepends=True)
    assert (sums, lines[-1].split()[1]) == ("".join(lines[:3]), "manifest.json")
    words = ("--vocab", f"{store.url}/vocab.txt")
    assert (
        bertdata("show", f"{out}/{shard}", *words).out
        == bertdata("show", tmp_path / "local" / shard, *words).out
    )
    for container in ("hdf5", "parquet"):
        target = f"{store.url}/converted/shard.{container}"
        assert bertdata("convert", f"{out}/{shard}", target).status == 0
        assert bertdata("md5", "--content", target).out.split()[0] == sums.split()[0]
    assert bertdata("pick-eval", f"{out}/{shard}", f"{store.url}/picked", "--num-examples=3").status == 0
    assert store.names("converted") == ["shard.hdf5", "shard.parquet"]
    assert store.contents("out") == expected
    store.put(f"out/{shard}", store.get(f"out/{shard}")[:-7])
    assert bertdata("verify-md5", out).status == 1


@pytest.mark.parametrize(
    ("store", "layout"),
    divided({name: name for name in ("flat", "habana", "graphcore", "nvidia")}),
    indirect=["store"],
)
@pytest.mark.thorough_after_first
def test_pack_reads_and_writes_object_stores(store, text, local, bertdata, tmp_path, layout):
    local.made(bertdata, *SMALL)
    assert bertdata(*text, "--output", f"{store.url}/shards", *SMALL).status == 0
    flags = ("--layout", layout, "--num-shards=2", "--workers=1")
    assert bertdata("pack", tmp_path / "local", "--output", tmp_path / "packed", *flags).status == 0
    made = bertdata("pack", f"{store.url}/shards", "--output", f"{store.url}/packed", *flags)
    assert made.status == 0, made.err
    assert store.contents("packed") == contents(tmp_path / "packed")
    assert bertdata("verify-md5", f"{store.url}/packed", "--content").status == 0
    beside = "packed_metadata.json"
    assert (beside in store.names()) == (layout == "habana")
    if layout == "habana":
        assert store.get(beside) == (tmp_path / beside).read_bytes()


@one_store
def test_a_stopped_pack_into_an_object_store_keeps_its_shards(store, text, bertdata, tmp_path):
    shards, packed = f"{store.url}/shards", f"{store.url}/packed"
    assert bertdata(*text, "--output", shards, *SMALL).status == 0
    words = ("pack", shards, "--output", packed, "--num-shards=2", "--workers=1")
    assert bertdata(*words).status == 0
    whole = store.contents("packed")
    lost = "shard-00001-of-00002.parquet"
    store.remove(f"packed/{lost}")
    outcome = bertdata(*words)
    assert outcome.status == 0, outcome.err
    assert "kept shard-00000-of-00002.parquet" in outcome.err
    assert f"made {lost}" in outcome.err
    assert store.contents("packed") == whole
    name = "part-00001-of-00003.tfrecord"
    store.put(f"shards/{name}", store.get(f"shards/{name}")[:-7] + b"changed")
    other = ("pack", shards, "--output", f"{store.url}/other", "--workers=1")
    outcome = bertdata(*other)
    assert outcome.status == 1
    assert f"{name}: found md5" in outcome.err.splitlines()[-1]
    assert store.contents("other") == {}


@one_store
def test_a_run_that_ended_between_shards_is_gone_on_with(store, text, local, bertdata):
    expected = local.made(bertdata, *SMALL)
    whole = store.get("text/part-00001-of-00003")
    store.put("text/part-00001-of-00003", b"A line with \xff in it.\n")
    words = (*text, "--output", f"{store.url}/out", *SMALL)
    stopped = bertdata(*words)
    assert stopped.status == 1
    assert f"error: {store.url}/text/part-00001-of-00003: line 1" in stopped.err.splitlines()[-1]
    left = store.names("out")
    assert "manifest.json" not in left
    assert "unfinished/plan.json" in left
    assert len([name for name in left if name.startswith("part-")]) == 2
    store.put("text/part-00001-of-00003", whole)
    resumed = bertdata(*words)
    assert resumed.err.count("kept part-") == 2
    assert store.contents("out") == expected


@one_store
def test_a_killed_run_is_gone_on_with(store, text, local, bertdata):
    expected = local.made(bertdata, *SMALL)
    words = (*text, "--output", f"{store.url}/out", *SMALL)
    run = start(*words)
    while run.poll() is None and not any(name.startswith("out/part-") for name in store.names()):
        time.sleep(0.01)
    run.kill()
    run.communicate()
    assert bertdata(*words).status == 0
    assert store.contents("out") == expected


@one_store
def test_a_lost_manifest_and_damaged_shards_are_made_again(store, text, local, bertdata):
    expected = local.made(bertdata, *SMALL)
    words = (*text, "--output", f"{store.url}/out", *SMALL)
    assert bertdata(*words).status == 0
    store.put("out/part-00000-of-00003.tfrecord", b"short")
    store.remove("out/part-00002-of-00003.tfrecord")
    assert bertdata(*words).err.count("made part-") == 2
    assert store.contents("out") == expected
    store.remove("out/manifest.json")
    bertdata(*words).assert_one_error(2, "is not empty and no dataset of ours")
    bertdata(*words, "--dupe-factor=3").assert_one_error(2, f"{store.url}/out")


@one_store
def test_a_dataset_of_other_settings_is_refused_and_stays(store, text, bertdata):
    words = (*text, "--output", f"{store.url}/out", *SMALL)
    assert bertdata(*words).status == 0
    before = store.contents("out")
    bertdata(*words, "--dupe-factor=3").assert_one_error(
        2, "was made with other settings: dupe_factor 1, now 3"
    )
    assert store.contents("out") == before


# --- whole or not at all ------------------------------------------------------------------------


def test_an_error_while_writing_leaves_nothing(store):
    class Stop(Exception):
        pass

    def write() -> None:
        with storage.open_output(f"{store.url}/shard", temporary=f"{store.url}/unfinished") as file:
            file.write(LARGE)
            raise Stop

    with pytest.raises(Stop):
        write()
    assert store.names() == []
    store.put("shard", b"of an earlier run")
    with pytest.raises(Stop):
        write()
    assert (store.names(), store.get("shard")) == (["shard"], b"of an earlier run")


def test_a_writer_that_is_abandoned_leaves_nothing(store):
    opened = storage.open_output(f"{store.url}/shard")
    opened.__enter__().write(LARGE)
    del opened
    assert store.names() == []


def test_a_killed_writer_leaves_nothing_there_or_here(store, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    code = f"""
import time
from bertdata.io import storage
with storage.open_output({f"{store.url}/shard"!r}) as file:
    file.write(bytes(12 << 20))
    print("written", flush=True)
    time.sleep(60)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(here)}
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    assert writer.stdout is not None
    with writer.stdout:
        assert writer.stdout.readline() == b"written\n"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert store.names() == []
    assert list(here.iterdir()) == []


def test_an_upload_that_fails_leaves_nothing(store, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(5, "the network is gone")

    if store.scheme == "gs":
        call = type(store.files)._call

        async def answer(files: Any, method: str, *words: object, **options: object) -> Any:
            if method == "DELETE":
                return {}, b""  # as Google answers, and its emulator does not, when an upload is given up
            return await call(files, method, *words, **options)

        monkeypatch.setattr(type(store.files), "_call", answer)
        monkeypatch.setattr("gcsfs.core.upload_chunk", refuse)
    else:
        monkeypatch.setattr(type(store.files), "_upload_file_part_concurrent", refuse)
    with (
        pytest.raises(StorageError, match=f"{store.url}/shard: the network is gone"),
        storage.open_output(f"{store.url}/shard") as file,
    ):
        file.write(LARGE)
    assert store.names() == []
    if store.scheme == "s3":
        assert "Uploads" not in store.files.call_s3("list_multipart_uploads", Bucket="data")


def test_a_store_that_keeps_other_bytes_than_it_was_sent_is_an_error(emulated, monkeypatch):
    """As an emulator does that takes a last CR and gcsfs's LF behind it for the end of a line."""
    from gcp_storage_emulator import server as emulator

    monkeypatch.setattr(emulator, "_read_data", emulator._read_data.others)
    path = "gs://data/other-bytes/file"
    with pytest.raises(StorageError, match=path), storage.open_output(path) as file:
        file.write(b"data\r")
    assert not storage.exists(path)
    with storage.open_output(path) as file:
        file.write(b"data\n")
    assert storage.read_bytes(path) == b"data\n"


def test_no_room_here_is_one_error(monkeypatch, tmp_path):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with (
        pytest.raises(StorageError, match="memory://x: no room here for it to grow: .*; set TMPDIR"),
        storage.open_output("memory://x"),
    ):
        pass


def test_two_writers_of_one_shard_both_end_well(store):
    together = threading.Barrier(2, timeout=20)
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with storage.open_output(f"{store.url}/shard") as file:
                file.write(LARGE)
                together.wait()
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert store.names() == ["shard"]
    assert store.get("shard") == LARGE


@one_store
def test_attempts_that_come_or_end_late_change_nothing(store, text, local, bertdata, corpus):
    expected = local.made(bertdata, *SMALL)
    out = f"{store.url}/out"
    assert bertdata(*text, "--output", out, *SMALL).status == 0
    changes = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
    recipe, settings = choose_settings(None, None, changes)
    parts = [f"{store.url}/text/{part.name}" for part in corpus]
    vocabulary = f"{store.url}/vocab.txt"
    targets = plan_targets(out, recipe, None, settings, parts, vocabulary_file(vocabulary, settings))
    (dataset,) = (target.dataset for target in targets)
    plan = TaskPlan(tokenizer=vocabulary_file(vocabulary, settings), targets=targets)
    results = [run_task(plan.make_part_task(part)) for part in parts]
    assert [result.kept for result in results] == [1, 1, 1]  # came late: found finished
    for result in results:
        part_entry, (shard_entry,) = result.entries[0]
        dataset.record(part_entry, shard_entry)  # ended late: recorded after the last step
    assert store.contents("out") == expected
    for _ in range(2):  # the last step itself, twice
        inputs = [entry for result in results for entry, _ in result.entries]
        shards = [shard for result in results for shard in result.shards]
        manifest = dataset.finish(inputs, shards, vocabulary=vocabulary)
        assert format_summary(out, manifest.as_json())
        assert store.contents("out") == expected


@one_store
def test_an_entry_that_the_manifest_does_not_have_is_kept(store, text, bertdata, corpus):
    out = f"{store.url}/out"
    assert bertdata(*text, "--output", out, *SMALL).status == 0
    part = "part-00001-of-00003"
    store.put(f"text/{part}", corpus[1].read_bytes() + b"\nOne sentence more.\nAnd another.\n")
    changes = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
    recipe, settings = choose_settings(None, None, changes)
    parts, vocabulary = [f"{store.url}/text/{path.name}" for path in corpus], f"{store.url}/vocab.txt"
    targets = plan_targets(out, recipe, None, settings, parts, vocabulary_file(vocabulary, settings))
    plan = TaskPlan(tokenizer=vocabulary_file(vocabulary, settings), targets=targets)
    path = f"{store.url}/text/{part}"
    assert [run_task(plan.make_part_task(path)).kept for _ in range(2)] == [0, 1]
    assert store.names("out/unfinished") == [f"{part}.tfrecord.json"]


@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_a_conditional_write_writes_once(store):
    """Google's emulator does not look at the condition, and writes twice."""
    for path in (f"{store.url}/lock", "memory://bucket/lock"):
        assert storage.create_remote_file(path, b"first") is True
        assert storage.create_remote_file(path, b"second") is False
        assert storage.read_bytes(path) == b"first"
        assert abs(storage.read_modified_time(path) - time.time()) < 60
        storage.remove(path)
    with pytest.raises(MissingInputError, match="there is no bucket no-such-bucket"):
        storage.create_remote_file("s3://no-such-bucket/lock", b"first")


@one_store
def test_a_file_is_copied_to_a_store_and_back(store, tmp_path):
    (tmp_path / "file").write_bytes(LARGE)
    storage.upload_copy(str(tmp_path / "file"), f"{store.url}/file")
    storage.download_copy(f"{store.url}/file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == LARGE == store.get("file")
    with pytest.raises(MissingInputError, match=f"{store.url}/lost: no such file"):
        storage.download_copy(f"{store.url}/lost", str(tmp_path / "lost"))


def test_a_download_that_breaks_leaves_the_file_that_was_there(monkeypatch, tmp_path):
    def break_off(self: object, path: str, target: str) -> None:
        Path(target).write_bytes(b"ha")
        raise OSError("connection reset by peer")

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "get_file", break_off)
    (tmp_path / "file").write_bytes(b"whole")
    with pytest.raises(StorageError, match="memory://bucket/file: connection reset by peer"):
        storage.download_copy("memory://bucket/file", str(tmp_path / "file"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_a_directory_is_removed_without_its_bucket_or_neighbours(store):
    for name in ("out/unfinished/a", "out/unfinished/b/c", "out/unfinished-too", "out/d"):
        store.put(name, b"x")
    storage.remove_directory(f"{store.url}/out/unfinished")
    storage.remove_directory(f"{store.url}/out/unfinished")
    assert store.names() == ["out/d", "out/unfinished-too"]


def test_the_mark_of_an_empty_folder_is_no_file(store, text, bertdata):
    store.files.pipe_file(f"{store.inner}/out/", b"")  # as the stores' consoles make folders
    assert storage.list_files(f"{store.url}/out") == []
    assert bertdata(*text, "--output", f"{store.url}/out", *SMALL).status == 0
    assert bertdata("verify-md5", f"{store.url}/out").status == 0


# --- the text stage -----------------------------------------------------------------------------


@pytest.fixture
def remote_tables(store: Store, punkt_folder: Path) -> str:
    """The URL of the Punkt tables."""
    return store.put_files("punkt", sorted(punkt_folder.iterdir()))


@pytest.fixture
def no_tables_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tables that are neither in a cache nor to be fetched."""
    import bertdata.io.assets as assets

    gone = assets.Asset(name="punkt", files=PUNKT_ASSETS["english"].files, sources=())
    monkeypatch.setitem(PUNKT_ASSETS, "english", gone)
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("store", "flags"),
    divided(
        {
            "mlperf": ("--eval-articles=3", "--block-size=0.1"),
            "nvidia": ("--recipe=nvidia", "--training-shards=3", "--test-shards=2"),
        }
    ),
    indirect=["store"],
)
def test_segment_reads_articles_and_tables_and_writes_parts(
    store, remote_tables, no_tables_here, bertdata, punkt_folder, tmp_path, flags
):
    extracted = sorted(path for path in EXTRACTED.rglob("wiki_*") if path.is_file())
    articles = store.put_files("articles/AA", extracted).removesuffix("/AA")
    common = (*flags, "--workers=1", "--punkt-tables")
    assert bertdata("segment", EXTRACTED, "--output", tmp_path / "text", *common, punkt_folder).status == 0
    made = bertdata("segment", articles, "--output", f"{store.url}/text", *common, remote_tables)
    assert made.status == 0, made.err
    assert store.contents("text") == contents(tmp_path / "text")


def test_tables_of_another_md5_are_an_error(store, remote_tables, bertdata):
    store.put("punkt/sent_starters.txt", b"other\n")
    arguments = ("segment", EXTRACTED, "--output", f"{store.url}/text", "--punkt-tables", remote_tables)
    bertdata(*arguments).assert_one_error(
        1, f"{remote_tables}/sent_starters.txt: md5 ", "expected 086bf65c05ec4f2be7bbe5dabb72b2ec"
    )
    assert store.names("text") == []
    with pytest.raises(AssetError):
        LoadSplitter("3.4.5", None, remote_tables)()


@pytest.mark.parametrize("ending", ["xml", "xml.bz2"])
def test_a_remote_dump_is_extracted_as_a_local_one(store, bertdata, tmp_path, ending):
    dump = tmp_path / f"wiki-20200101-pages-articles.{ending}"
    plain = write_dump(
        tmp_path / "plain.xml",
        *(page(f"Title {number}", f"Some text {number}.", number=number) for number in range(1, 6)),
    ).read_bytes()
    dump.write_bytes(bz2.compress(plain) if ending.endswith("bz2") else plain)
    url = store.put(dump.name, dump.read_bytes())
    assert bertdata("extract", dump, "--output", tmp_path / "one", "--workers=1").status == 0
    made = bertdata("extract", url, "--output", tmp_path / "two", "--workers=1")
    assert made.status == 0, made.err
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert contents(tmp_path / "one")
    made = bertdata("extract", url, "--output", f"{store.url}/out", "--extractor", "mlperf", "--templates")
    assert made.status == 0, made.err
    assert (
        bertdata("extract", dump, "--output", tmp_path / "three", "--extractor=mlperf", "--templates").status
        == 0
    )
    assert store.contents("out") == contents(tmp_path / "three")


# --- errors -------------------------------------------------------------------------------------


def test_a_missing_file_or_bucket_is_named(store, text, bertdata):
    lost = f"{store.scheme}://no-such-bucket"
    bertdata("show", f"{store.url}/lost").assert_one_error(2, f"{store.url}/lost: no such file or directory")
    bertdata("show", f"{lost}/x").assert_one_error(2, f"{lost}/x: there is no bucket no-such-bucket")
    bertdata("create", f"{lost}/part-*", *text[2:], "--output", f"{store.url}/out").assert_one_error(
        2, f"{lost}/part-*: there is no bucket no-such-bucket"
    )
    bertdata(*text, "--output", f"{lost}/out", *SMALL).assert_one_error(
        2, f"{lost}/out: there is no bucket no-such-bucket"
    )
    with (
        pytest.raises(MissingInputError, match=f"{lost}/x: there is no bucket no-such-bucket"),
        storage.open_output(f"{lost}/x") as file,
    ):
        file.write(b"x")
    assert not store.files.exists("no-such-bucket")


@pytest.mark.parametrize(("scheme", "package", "extra"), [("gs", "gcsfs", "gcs"), ("s3", "s3fs", "s3")])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, scheme, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(import_module("fsspec.registry")._registry, scheme, raising=False)
    with pytest.raises(MissingExtraError) as failure:
        storage.read_bytes(f"{scheme}://data/x")
    assert str(failure.value) == (
        f"{scheme}://data/x: {scheme}:// needs the package {package}: pip install {package}, "
        f"or pip install --editable '.[{extra}]' in bertdata's source tree"
    )


@pytest.fixture
def forgotten_file_systems() -> Iterator[None]:
    """No file system of another test, which would be used again with its account."""
    import gcsfs
    import s3fs

    for kind in (gcsfs.GCSFileSystem, s3fs.S3FileSystem):
        kind.clear_instance_cache()
    yield
    for kind in (gcsfs.GCSFileSystem, s3fs.S3FileSystem):
        kind.clear_instance_cache()


def test_missing_credentials_are_one_line(emulated, forgotten_file_systems, monkeypatch, tmp_path, bertdata):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    bertdata("show", "s3://data/x").assert_one_error(
        1, "s3://data/x: no credentials that are accepted (Unable to locate credentials)"
    )


@pytest.fixture(params=[401, 403])
def refusing_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a store that permits nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # a client that has read enough

    class Refuse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b'{"error": {"message": "you may not"}}'
            self.send_response(request.param)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_PUT = do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Refuse)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("scheme", ["gs", "s3"])
def test_a_refused_permission_is_one_line(
    emulated,
    forgotten_file_systems,
    refusing_server,
    monkeypatch,
    bertdata,
    corpus,
    small_vocabulary_file,
    scheme,
):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", refusing_server)
    monkeypatch.setenv("AWS_ENDPOINT_URL", refusing_server)
    bertdata("show", f"{scheme}://data/x").assert_one_error(1, f"{scheme}://data/x: permission denied (")
    words = ("create", corpus[0], "--vocab", small_vocabulary_file, *SMALL)
    bertdata(*words, "--output", f"{scheme}://data/out").assert_one_error(
        1, f"{scheme}://data/out: permission denied ("
    )


def test_a_server_that_is_not_there_is_one_line(emulated, forgotten_file_systems, monkeypatch, bertdata):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    bertdata("show", "s3://data/x").assert_one_error(1, "s3://data/x: ", "Could not connect")
