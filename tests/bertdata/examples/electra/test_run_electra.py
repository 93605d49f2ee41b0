"""ELECTRA's files of a whole run: order of the inputs, one stream, examples dealt to 1,000 files."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import beam_pipelines.prepare
import bertdata as face
from bertdata.cli.main import main
from bertdata.config.dialects import find_dialect
from bertdata.examples.electra.batch import ElectraExample
from bertdata.examples.electra.reference import ReferenceElectra, ReferenceStream
from bertdata.examples.electra.settings import ElectraSettings
from bertdata.io.open_files import allow_open_files
from bertdata.records import Vocabulary
from bertdata.shards.containers import open_reader
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from tests.bertdata.examples.electra.test_electra import CASES, md5_of_rows, padded, settings_of

FLAGS = ("--objective=electra", "--dialect=google", "--max-seq-length=16", "--as-original")
FIRST = "pretrain_data.tfrecord-0-of-1000"


def name_of(number: int) -> str:
    return f"pretrain_data.tfrecord-{number}-of-1000"


def in_order_of_making(dataset: Path) -> list[ElectraExample]:
    """All examples, taken from the files in turn."""
    files = []
    for number in range(1000):
        path = dataset / name_of(number)
        if path.stat().st_size:
            with open_reader(str(path), objective="electra") as reader:
                files.append([one for batch in reader.batches(99) for one in batch.examples()])
    rounds = max(map(len, files))
    return [file[place] for place in range(rounds) for file in files if place < len(file)]


@pytest.fixture(scope="module")
def parts(corpus: list[Path], tmp_path_factory: Any) -> list[Path]:
    """Six inputs of a few documents, so that their order shows."""
    place, found = tmp_path_factory.mktemp("parts"), []
    for part in corpus:
        lines = part.read_bytes().splitlines(keepends=True)
        middle = lines.index(b"\n", len(lines) // 2) + 1
        for name, half in ((part.name, lines[:middle]), (f"{part.name}.b", lines[middle:])):
            (place / name).write_bytes(b"".join(half) * 2)
            found.append(place / name)
    return sorted(found)


def run(parts: list[Path], vocabulary: Path, output: Path, *flags: str) -> Path:
    given = ["create", *map(str, parts), "--output", str(output), "--vocab", str(vocabulary), *FLAGS, *flags]
    assert main(given) == 0
    return output


def expected(parts: list[Path], vocabulary_file: Path, settings: ElectraSettings) -> list[ElectraExample]:
    """The examples by the readable twin, the inputs in the order of Python's own shuffle."""
    dialect = find_dialect("google")
    vocabulary: Vocabulary = parse_vocabulary(vocabulary_file.read_bytes(), "vocab", dialect)
    tokenizer = WordPieceTokenizer(vocabulary, dialect, lower_case=True)
    shuffled = sorted(parts)
    random.Random(settings.random_seed).shuffle(shuffled)
    stream, found = ReferenceStream(settings, len(parts)), []
    for part in shuffled:
        made = ReferenceElectra(
            tokenizer.encode([part.read_bytes()], [part.name]), vocabulary, settings, stream
        )
        found += list(made.batch(0, len(made)).examples())
    return found


def test_inputs_are_shuffled_read_by_one_stream_and_dealt_in_turn(
    parts, small_vocabulary_file, tmp_path, bertdata
):
    made = run(parts, small_vocabulary_file, tmp_path / "run", "--random-seed=4", "--workers=1")
    settings = ElectraSettings(dialect="google", max_seq_length=16, random_seed=4)
    wanted = expected(parts, small_vocabulary_file, settings)
    assert len(wanted) > 1000  # some files have two examples
    assert in_order_of_making(made) == wanted
    manifest = json.loads((made / "manifest.json").read_text())
    assert manifest["settings"]["container"]["dealt_files"] == 1000
    assert sorted(entry["name"] for entry in manifest["shards"]) == sorted(map(name_of, range(1000)))
    assert {entry["input"] for entry in manifest["shards"]} == {""}
    assert len(manifest["inputs"]) == len(parts)
    outcome = bertdata("verify-md5", made, "--content")
    assert "1000 files right, sound" in outcome.out
    assert len(face.open_dataset(str(made))) == len(wanted)


def test_workers_and_engines_make_the_same_bytes_and_a_finished_run_is_kept(
    parts, small_vocabulary_file, tmp_path
):
    made = [
        run(parts, small_vocabulary_file, tmp_path / name, *flags)
        for name, flags in (("one", ("--workers=1", "--engine=python")), ("two", ("--workers=2",)))
    ]
    assert (made[0] / "MD5SUMS").read_bytes() == (made[1] / "MD5SUMS").read_bytes()
    again = face.create(
        list(map(str, parts)),
        str(made[1]),
        vocab=str(small_vocabulary_file),
        objective="electra",
        dialect="google",
        max_seq_length=16,
        as_original=True,
        workers=1,
    )
    assert again.kept == 1000
    (made[1] / FIRST).unlink()
    run(parts, small_vocabulary_file, made[1], "--workers=1")
    assert (made[0] / "MD5SUMS").read_bytes() == (made[1] / "MD5SUMS").read_bytes()
    assert (made[0] / FIRST).read_bytes() == (made[1] / FIRST).read_bytes()


def test_the_originals_files_are_read_without_a_manifest(parts, small_vocabulary_file, tmp_path):
    """Some of them without examples, as where a run makes fewer than 1,000."""
    made = run(parts[:1], small_vocabulary_file, tmp_path / "run", "--workers=1")
    wanted = in_order_of_making(made)
    assert 100 < len(wanted) < 1000
    for path in made.iterdir():
        if path.is_file() and not path.name.startswith("pretrain_data"):
            path.unlink()
    for found in (
        face.open_dataset(str(made), unverified=True, objective="electra"),
        face.open_dataset(str(made), unverified=True),
    ):
        assert found.layout.objective == "electra"
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))


@pytest.mark.thorough
def test_records_that_tensorflow_wrote_are_read_as_ours(parts, small_vocabulary_file, tmp_path):
    """Written as the program writes them: three features of so many integers, in whatever order."""
    tf = pytest.importorskip("tensorflow")
    made = run(parts[:1], small_vocabulary_file, tmp_path / "run", "--workers=1")
    settings = ElectraSettings(max_seq_length=16)
    examples, theirs = in_order_of_making(made), tmp_path / "theirs"
    theirs.mkdir()
    writers = [tf.io.TFRecordWriter(str(theirs / name_of(number))) for number in range(1000)]
    for number, example in enumerate(examples):
        values = dict(zip(("input_ids", "input_mask", "segment_ids"), padded(example, settings), strict=True))
        lists = {name: tf.train.Int64List(value=row) for name, row in values.items()}
        features = {name: tf.train.Feature(int64_list=found) for name, found in lists.items()}
        record = tf.train.Example(features=tf.train.Features(feature=features))
        writers[number % 1000].write(record.SerializeToString())
    for writer in writers:
        writer.close()
    assert in_order_of_making(theirs) == examples
    assert len(face.open_dataset(str(theirs), unverified=True)) == len(examples)


@pytest.mark.parametrize("case", CASES[:2])
def test_the_files_of_the_kits_text_hold_the_programs_examples(case, kit, tmp_path):
    oracles = kit / "encoders" / "electra" / "examples.json"
    if not oracles.is_file():
        pytest.skip("the kit has no oracles for ELECTRA")
    settings, wanted = settings_of(case), json.loads(oracles.read_text())[case]
    made = run(
        [kit / "results" / "eval.txt"],
        kit / "vocab" / "bert-base-uncased.txt",
        tmp_path / "run",
        f"--max-seq-length={settings.max_seq_length}",
        f"--random-seed={settings.random_seed}",
        "--workers=1",
    )
    found = in_order_of_making(made)
    assert md5_of_rows(padded(example, settings) for example in found) == wanted["md5"]
    assert (made / wanted["first_file"]).stat().st_size > 0


def test_a_part_that_cannot_be_read_ends_the_run_or_is_left_out(
    parts, small_vocabulary_file, tmp_path, bertdata
):
    bad = tmp_path / "zz-bad"
    bad.write_bytes(b"\xff\xfe\n")
    given = ["create", *map(str, [parts[0], bad]), "--vocab", str(small_vocabulary_file), *FLAGS]
    outcome = bertdata(*given, "--output", tmp_path / "no", "--workers=1")
    assert (outcome.status, outcome.err.splitlines()[-1].count("zz-bad: looks like UTF-16")) == (1, 1)
    assert not (tmp_path / "no").exists()
    outcome = bertdata(*given, "--output", tmp_path / "run", "--skip-bad-inputs", "--workers=1")
    assert outcome.status == 0, outcome.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert [entry["name"] for entry in manifest["skipped"]] == ["zz-bad"]
    only = ["create", str(bad), "--vocab", str(small_vocabulary_file), *FLAGS, "--skip-bad-inputs"]
    bertdata(*only, "--output", tmp_path / "none").assert_one_error(1, "nothing is left")


def test_a_dry_run_tells_of_every_file(parts, small_vocabulary_file, tmp_path, bertdata):
    given = ["create", *map(str, parts), "--vocab", str(small_vocabulary_file), *FLAGS, "--dry-run"]
    outcome = bertdata(*given, "--output", tmp_path / "run")
    assert outcome.status == 0, outcome.err
    assert "1000 of 1000 tfrecord shards to make" in outcome.out
    assert f"make  {FIRST}  from 6 parts" in outcome.out
    assert not (tmp_path / "run").exists()


def test_a_pipeline_refuses_it(parts, small_vocabulary_file, tmp_path, capfd):
    given = ["--input", *map(str, parts), "--output", str(tmp_path / "made")]
    assert beam_pipelines.prepare.main([*given, "--vocab", str(small_vocabulary_file), *FLAGS]) == 2
    assert "use bertdata create" in capfd.readouterr().err


def test_the_limit_of_open_files_is_raised_for_the_run_alone():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, soft), hard))
    try:
        with allow_open_files(1000):
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 1256
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(512, soft)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_parts_that_cannot_be_read_are_left_out_unless_all_are(
    parts: list[Path], small_vocabulary_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"A line with \xff in it.\n")
    out = run([*parts[:2], bad], small_vocabulary_file, tmp_path / "out", "--skip-bad-inputs")
    manifest = json.loads((out / "manifest.json").read_text())
    assert [entry["name"] for entry in manifest["skipped"]] == ["bad.txt"]
    assert len(manifest["inputs"]) == 2
    capsys.readouterr()
    given = ["create", str(bad), "--output", str(tmp_path / "none"), "--vocab", str(small_vocabulary_file)]
    assert main([*given, *FLAGS, "--skip-bad-inputs"]) == 1
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "none" / "manifest.json").exists()
