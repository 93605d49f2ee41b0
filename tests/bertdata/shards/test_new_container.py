"""A container is one class and one row of CONTAINERS: a new one works in create, verify-md5, show, stats."""

import io
import json
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import bertdata
from bertdata.cli.main import main
from bertdata.config import settings
from bertdata.config.settings import FORMATS
from bertdata.errors import SettingsError
from bertdata.examples.bert.objective import BERT
from bertdata.io import manifest_file
from bertdata.io.outputs import OutputFormat
from bertdata.shards import containers
from bertdata.shards.container import Container, ReadRequest
from bertdata.shards.containers import CONTAINERS, make_writer
from bertdata.shards.tfrecord import TFRecordReader, TFRecordWriter
from schemas import load_schema
from tests.support.paths import ROOT

MARK = b"MARK"
VOCABULARY = ROOT / "golden" / "vocab.txt"
SIZES: dict[str, Any] = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}


class Marked(Container):
    """The records of a TFRecord behind four bytes of its own."""

    name = "marked"
    form = OutputFormat(words="a marked file", begins=lambda head: head.startswith(MARK))
    first_bytes = (MARK,)

    def make_writer(self, sink, layout, engine, name):
        sink.write(MARK)
        return TFRecordWriter(sink, layout, engine, name)

    def make_reader(self, file: BinaryIO, known: ReadRequest):
        records = io.BytesIO(file.read().removeprefix(MARK))
        return TFRecordReader(records, known.name, known.engine, known.objective, known.padding_id)


@pytest.fixture
def with_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row, and the name where names are listed: FORMATS and the manifest's schema."""
    schema = load_schema("manifest")
    formats_in(schema).append("marked")

    def load(name: str) -> dict[str, Any]:
        return schema if name == "manifest" else load_schema(name)

    monkeypatch.setitem(CONTAINERS, "marked", Marked())
    for module in (settings, containers):
        monkeypatch.setattr(module, "FORMATS", (*FORMATS, "marked"))
    monkeypatch.setattr(manifest_file, "load_schema", load)


def formats_in(schema: dict[str, Any]) -> list[str]:
    """The containers that a manifest may name."""
    found: list[str] = schema["$defs"]["container"]["properties"]["format"]["enum"]
    return found


def test_names_are_those_of_the_rows():
    assert set(formats_in(load_schema("manifest"))) == set(CONTAINERS)
    assert set(FORMATS) <= set(CONTAINERS)
    for name in FORMATS:
        assert CONTAINERS[name].matches_name(f"part.{name}")
        assert isinstance(CONTAINERS[name].form, OutputFormat)


def test_a_name_without_a_row_is_refused_and_no_tfrecord_is_written():
    with pytest.raises(SettingsError, match="format is 'marked', expected one of tfrecord"):
        make_writer("marked", io.BytesIO(), BERT.settings_type().layout)


@pytest.mark.usefixtures("with_row")
def test_a_new_row_works_in_every_command(corpus: list[Path], tmp_path: Path, capsys) -> None:
    def made(format: str) -> list[str]:
        """The content md5s of a dataset in the container."""
        output = tmp_path / format
        done = bertdata.create(corpus, output, vocab=VOCABULARY, format=format, workers=1, **SIZES)
        return [shard.content_md5 for shard in done.datasets[0].manifest.shards]

    assert made("marked") == made("tfrecord")
    shards = sorted((tmp_path / "marked").glob("part-*"))
    assert {path.suffix for path in shards} == {".marked"}
    assert all(path.read_bytes().startswith(MARK) for path in shards)
    plain = [MARK + path.read_bytes() for path in sorted((tmp_path / "tfrecord").glob("*.tfrecord"))]
    assert [path.read_bytes() for path in shards] == plain

    directory = str(tmp_path / "marked")
    for words in (["verify-md5", directory], ["verify-md5", directory, "--content"]):
        assert main(words) == 0
    shown = {}
    for format in ("marked", "tfrecord"):
        capsys.readouterr()
        assert main(["show", str(tmp_path / format / f"{shards[0].stem}.{format}"), "--num", "2"]) == 0
        shown[format] = capsys.readouterr().out
        assert main(["stats", str(tmp_path / format), "--json", "--workers", "1"]) == 0
        shown[format] += json.dumps(json.loads(capsys.readouterr().out)["datasets"][0]["examples"])
    assert shown["marked"] == shown["tfrecord"]
    assert list(bertdata.open_dataset(directory)) == list(bertdata.open_dataset(tmp_path / "tfrecord"))

    target = tmp_path / "again.marked"
    assert main(["convert", str(tmp_path / "tfrecord" / f"{shards[0].stem}.tfrecord"), str(target)]) == 0
    assert target.read_bytes() == shards[0].read_bytes()


@pytest.mark.usefixtures("with_row")
def test_files_of_a_new_row_are_found_without_a_manifest(corpus, tmp_path, capsys):
    bertdata.create(corpus[:1], tmp_path / "set", vocab=VOCABULARY, format="marked", workers=1, **SIZES)
    (tmp_path / "set" / "manifest.json").unlink()
    assert len(bertdata.open_dataset(tmp_path / "set", unverified=True)) > 0
    [shard] = (tmp_path / "set").glob("*.marked")
    data = bytearray(shard.read_bytes())
    data[100] ^= 1
    shard.write_bytes(data)
    assert main(["verify-md5", str(tmp_path / "set")]) == 1
    assert f"{shard}: " in capsys.readouterr().out
