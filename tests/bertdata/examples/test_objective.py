"""The seam of objectives: another one goes through every command without a change to the package."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import pytest

import bertdata as face
from bertdata.cli.main import main
from bertdata.errors import SettingsError, ShardError
from bertdata.examples.bert.objective import BERT
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.containers import make_writer, open_reader
from schemas import load_schema
from tests.support.commands import finish, start
from tests.support.paths import ROOT
from tests.support.plain_objective import FIELDS, NAME, Plain

FORMATS = ("tfrecord", "hdf5", "parquet")


@pytest.fixture(scope="module")
def datasets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus as examples of ids alone, in each container, made by two workers."""
    place = tmp_path_factory.mktemp("plain")
    for format in FORMATS:
        words = ["create", *map(str, corpus), "--output", str(place / format), "--objective", NAME]
        words += ["--vocab", str(small_vocabulary_file), "--max-seq-length=48", "--format", format]
        assert main([*words, "--sentences-per-example=3", "--workers=2"]) == 0
    return {format: place / format for format in FORMATS}


def ids_of(path: Path, objective: str | None = NAME) -> Iterator[list[int]]:
    with open_reader(str(path), objective=objective) as reader:
        for batch in reader.batches(50):
            yield from (example.ids for example in batch.examples())


def shard(dataset: Path) -> Path:
    return next(path for path in sorted(dataset.iterdir()) if path.name.startswith("part-00001"))


def test_every_container_holds_the_same_examples(datasets):
    found = {format: list(ids_of(shard(path))) for format, path in datasets.items()}
    assert found["tfrecord"] == found["hdf5"] == found["parquet"]
    assert len(found["tfrecord"]) > 10
    assert all(0 < len(ids) <= 48 for ids in found["tfrecord"])


def test_the_content_md5_is_that_of_the_canonical_tfrecord(datasets):
    def content(format: str) -> list[str]:
        manifest = json.loads((datasets[format] / "manifest.json").read_text())
        return [entry["content_md5"] for entry in manifest["shards"]]

    assert content("tfrecord") == content("hdf5") == content("parquet")
    manifest = json.loads((datasets["tfrecord"] / "manifest.json").read_text())
    assert content("tfrecord") == [entry["md5"] for entry in manifest["shards"]]
    assert manifest["settings"]["objective"] == {
        "name": NAME,
        "max_seq_length": 48,
        "random_seed": 12345,
        "sentences_per_example": 3,
    }


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("content", [(), ("--content",)])
def test_verify_md5_finds_it_sound(bertdata, datasets, format, content):
    outcome = bertdata("verify-md5", datasets[format], *content)
    assert outcome.status == 0, outcome.err
    assert "3 files right, sound" in outcome.out


def test_verify_md5_names_the_record_of_a_flipped_bit(bertdata, datasets, tmp_path):
    whole = shard(datasets["tfrecord"]).read_bytes()
    copy = tmp_path / "set"
    copy.mkdir()
    for path in datasets["tfrecord"].iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    (copy / shard(datasets["tfrecord"]).name).write_bytes(whole[:-5] + bytes((whole[-5] ^ 1,)) + whole[-4:])
    outcome = bertdata("verify-md5", copy)
    assert outcome.status == 1
    last = len(list(ids_of(shard(datasets["tfrecord"])))) - 1
    assert f"record {last}: the checksum of its data does not fit" in outcome.out


@pytest.mark.parametrize("format", FORMATS)
def test_show_tells_words_and_nothing_of_segments_or_masks(bertdata, datasets, small_vocabulary_file, format):
    outcome = bertdata("show", shard(datasets[format]), "--vocab", small_vocabulary_file, "--index=2")
    assert outcome.status == 0, outcome.err
    first, words = outcome.out.splitlines()
    assert first.startswith("example 2: ")
    assert first.endswith(" of padding")
    assert words.split()[0] == "[CLS]"
    assert "next sentence" not in outcome.out
    assert "mask" not in outcome.out


@pytest.mark.parametrize("format", FORMATS)
def test_stats_count_lengths_and_padding_only(bertdata, datasets, format):
    outcome = bertdata("stats", datasets[format], "--json", "--workers=1")
    assert outcome.status == 0, outcome.err
    (found,) = json.loads(outcome.out)["datasets"]
    lengths = [len(ids) for path in sorted(datasets[format].glob("part-*")) for ids in ids_of(path)]
    assert found["examples"] == len(lengths)
    assert found["tokens"] == sum(lengths)
    assert found["lengths"]["max"] == max(lengths)
    assert found["objective"] == NAME
    assert not {"masks", "next_sentences"} & set(found)
    text = bertdata("stats", datasets[format], "--workers=1").out
    assert "padding" in text
    assert "next sentence" not in text
    assert "masked" not in text


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_convert_loses_nothing(bertdata, datasets, tmp_path, source, target):
    converted = tmp_path / f"shard.{target}"
    outcome = bertdata("convert", shard(datasets[source]), converted)
    assert outcome.status == 0, outcome.err
    assert list(ids_of(converted)) == list(ids_of(shard(datasets["tfrecord"])))
    if target == "tfrecord":
        assert converted.read_bytes() == shard(datasets["tfrecord"]).read_bytes()
    back = tmp_path / "back.tfrecord"  # no manifest lies beside the converted file
    assert bertdata("convert", converted, back, "--objective", NAME).status == 0
    assert back.read_bytes() == shard(datasets["tfrecord"]).read_bytes()


def test_a_parquet_file_tells_its_objective_by_itself(datasets, tmp_path):
    copy = tmp_path / "alone.parquet"
    copy.write_bytes(shard(datasets["parquet"]).read_bytes())
    assert list(ids_of(copy, None)) == list(ids_of(shard(datasets["parquet"])))


READING = {
    "show": ("--index=0",),
    "stats": ("--workers=1",),
    "verify-md5": ("--content",),
    "md5": ("--content",),
}


@pytest.mark.parametrize("command", READING)
def test_no_file_chooses_code_to_import(datasets, command):
    """In a process that has not loaded the objective: refused with the remedy, which then works."""
    whole = command in ("stats", "verify-md5")
    path = datasets["parquet"] if whole else shard(datasets["parquet"])
    words = (command, path, *READING[command])
    refused = finish(start(*words))
    told = f"no file may choose code to import; if you trust that code, give --objective {NAME}"
    assert refused.status in (1, 2)
    assert told in refused.err + refused.out
    allowed = finish(start(*words, "--objective", NAME))
    assert allowed.status == 0, allowed.err


@pytest.mark.parametrize("format", ["hdf5", "parquet"])
def test_the_content_of_a_file_is_that_of_the_objective_which_is_named(bertdata, datasets, tmp_path, format):
    """The copy lies beside no manifest; HDF5 has no place for the name."""
    copy = tmp_path / f"alone.{format}"
    copy.write_bytes(shard(datasets[format]).read_bytes())
    outcome = bertdata("md5", "--content", copy, "--objective", NAME)
    assert outcome.status == 0, outcome.err
    assert outcome.out.split()[0] == hashlib.md5(shard(datasets["tfrecord"]).read_bytes()).hexdigest()


def test_no_recipe_is_named_that_was_not_used(bertdata, datasets):
    manifest = json.loads((datasets["tfrecord"] / "manifest.json").read_text())
    assert manifest["recipe"] is manifest["phase"] is None
    outcome = bertdata("stats", datasets["tfrecord"], "--json", "--workers=1")
    assert [one["title"] for one in json.loads(outcome.out)["datasets"]] == [NAME]


def test_a_file_is_of_the_objective_with_the_most_of_its_fields(
    monkeypatch, small_vocabulary_file, corpus, tmp_path
):
    """BERT's files have all fields of mlm's too, whichever comes first."""
    words = ["create", str(corpus[0]), "--vocab", str(small_vocabulary_file)]
    for format in ("tfrecord", "hdf5"):
        assert main([*words, f"--output={tmp_path / format}", f"--format={format}", "--dupe-factor=1"]) == 0
    backwards = dict(reversed(OBJECTIVES.items()))
    monkeypatch.setattr("bertdata.shards.hdf5.OBJECTIVES", backwards)
    monkeypatch.setattr("bertdata.shards.tfrecord.OBJECTIVES", backwards)
    for format in ("tfrecord", "hdf5"):
        [path] = (tmp_path / format).glob(f"*.{format}")
        with open_reader(str(path)) as reader:
            assert reader.layout.objective == "bert"


PREFIXED = Plain(
    f"{__name__}:PREFIXED",
    {
        "tfrecord": {
            f"packed_{name}": field
            for name, field in zip(("input_ids", "used"), FIELDS["tfrecord"].values(), strict=True)
        },
        "hdf5": {
            f"packed_{name}": field
            for name, field in zip(("input_len", "used"), FIELDS["hdf5"].values(), strict=True)
        },
    },
)
"""Examples of ids alone, in fields that are called as Graphcore's and NVIDIA's packed rows call theirs."""


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("format", ["tfrecord", "hdf5"])
def test_fields_may_be_called_as_those_of_packed_rows(tmp_path, format, engine):
    layout = ShardLayout(objective=PREFIXED.name, max_seq_length=8)
    batch = ExampleBatch.of([ExampleBatch.example_type(ids=[5, 6, 7])], wide=False)
    path = tmp_path / f"own.{format}"
    with path.open("wb") as file:
        writer = make_writer(format, file, layout, engine)
        writer.write(batch)
        writer.close()
    with open_reader(str(path), engine, PREFIXED.name) as reader:
        assert reader.layout == layout
        assert [example.ids for one in reader.batches(9) for example in one.examples()] == [[5, 6, 7]]


def test_a_record_of_an_unknown_objective_is_refused_with_the_remedy(datasets, tmp_path):
    path = tmp_path / "alone.tfrecord"
    path.write_bytes(shard(datasets["tfrecord"]).read_bytes())
    with pytest.raises(
        ShardError, match=r"record 0: lacks input_ids, .*; give --objective NAME, that of its"
    ):
        list(ids_of(path, None))


def test_examples_without_masks_cannot_be_masked_when_they_are_read(datasets):
    opened = face.open_dataset(datasets["hdf5"], objective=NAME)
    for most in (None, 20):
        with pytest.raises(SettingsError, match=f"the examples of the objective {NAME} have no masked words"):
            opened.masked(max_predictions_per_seq=most)


@pytest.mark.parametrize("name", ["bert", "mlm"])
def test_an_objective_that_the_manifest_contradicts_is_refused(bertdata, datasets, tmp_path, name):
    told = f"its manifest has the objective {NAME}, but {name} was given; give {NAME}, or none"
    path, out = shard(datasets["hdf5"]), tmp_path / "out"
    bertdata("show", path, "--objective", name).assert_one_error(2, told)
    bertdata("convert", path, tmp_path / "x.parquet", "--objective", name).assert_one_error(2, told)
    bertdata("pack", datasets["hdf5"], "--output", out, "--objective", name).assert_one_error(2, told)
    with pytest.raises(SettingsError, match="its manifest has the objective"):
        face.open_dataset(datasets["hdf5"], objective=name)
    assert not [*tmp_path.iterdir()]


def test_a_file_of_an_objective_that_nobody_knows_is_refused_without_a_remedy(bertdata, datasets, tmp_path):
    path = tmp_path / "later.hdf5"
    path.write_bytes(shard(datasets["hdf5"]).read_bytes())
    with h5py.File(path, "a") as file:
        file.attrs["bertdata.objective"] = "gpt"
    told = f"{path}: has the objective 'gpt', which is not known; known are bert, mlm, sop, electra, span, "
    bertdata("show", path).assert_one_error(2, told)


def test_both_engines_write_and_read_its_records_alike(datasets):
    path = str(shard(datasets["tfrecord"]))
    read = {}
    for engine in ("native", "python"):
        with open_reader(path, engine, NAME) as reader:
            read[engine] = [example for batch in reader.batches(7) for example in batch.examples()]
    assert read["native"] == read["python"]


def test_a_setting_of_another_objective_is_refused(bertdata, corpus, small_vocabulary_file, tmp_path):
    words = ["create", corpus[0], "--output", tmp_path / "out", "--vocab", small_vocabulary_file]
    outcome = bertdata(*words, "--objective", NAME, "--masked-lm-prob=0.3")
    outcome.assert_one_error(2, "unknown settings: --masked-lm-prob")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "gpt",
            "objective 'gpt' is not known; known are bert, mlm, sop, electra, span, squad, classification, "
            "regression, one of your own is package.module:NAME",
        ),
        ("no.such.module:X", "No module named 'no'"),
        ("json:NOTHING", "has no attribute 'NOTHING'"),
        ("json:loads", "is no Objective"),
        ("bertdata.examples.bert.objective:BERT", "its own name is 'bert'"),
    ],
)
def test_a_name_that_is_no_objective_is_refused(name, words):
    with pytest.raises(SettingsError) as refused:
        find_objective(name)
    assert words in str(refused.value)


def test_every_objective_of_the_package_declares_its_fields_in_the_schema():
    declared = {name for name, value in load_schema("example").items() if isinstance(value, dict)}
    of_words = {one.of_words for one in OBJECTIVES.values()} - {""}
    assert declared == set(OBJECTIVES) - of_words | {"word_starts"}


def test_a_field_of_no_column_is_a_mistake_that_is_named():
    class Wrong(Objective):
        def make(self, documents, vocabulary, settings, engine=None):
            raise AssertionError

    wrong = Wrong("x", {"tfrecord": {"a": {"type": "int64", "shape": "S", "of": "nothing"}}})
    with pytest.raises(SettingsError, match="field a: is made of 'nothing'"):
        wrong.fields("tfrecord")
    with pytest.raises(SettingsError, match="no fields are declared for hdf5"):
        Wrong("y", {}).fields("hdf5")


WELDED = ("next_sentence", "next sentences", "next_label", "first_length", "second segment", "segment_ids")


def test_nothing_but_objectives_of_two_segments_knows_of_segments_and_a_label():
    """Documentation aside; the drop-in has the flags of a script that makes nothing else.

    The layouts of packed rows, rows of varying length and LDDL's are other programs' forms of BERT's. The
    request to create names the settings of all objectives, and knows nothing of what they mean.
    """
    own = [
        *(
            ROOT / "bertdata/examples" / name
            for name in ("bert", "sop", "electra", "squad", "classification")
        ),
        ROOT / "bertdata/examples/fine_tuning.py",
        ROOT / "bertdata/_native/examples",
        *(ROOT / "bertdata/shards" / name for name in ("packed", "varlength.py", "lddl.py")),
        ROOT / "bertdata/steps/create_request.py",
    ]
    for path in sorted((ROOT / "bertdata").rglob("*")):
        if path.suffix not in (".py", ".h", ".cpp") or any(path == one or one in path.parents for one in own):
            continue
        text = path.read_text(encoding="utf-8")
        assert not [word for word in WELDED if word in text], path


def test_fields_are_declared_in_the_schema_and_nowhere_in_the_kernels():
    names = {name for form in load_schema("example")["bert"].values() for name in form}
    names -= {column.name for column in BERT.batch_type.columns()}  # a kernel may know a column
    assert len(names) > 10
    sources = [path for path in (ROOT / "bertdata/_native").rglob("*") if path.suffix in (".h", ".cpp")]
    assert len(sources) > 10
    for path in sources:
        text = path.read_text(encoding="utf-8")
        assert not [name for name in names if f'"{name}"' in text], path
