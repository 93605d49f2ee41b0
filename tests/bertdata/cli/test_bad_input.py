"""Wrong input of every kind: a clear error, its exit status, and nothing lost or half written."""

import errno
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from bertdata.config.dialects import SPECIAL_TOKENS
from bertdata.io import storage
from bertdata.shards.framing import frame_payload
from tests.support.commands import (
    SMALL,
    Outcome,
    Program,
    contents,
    dataset_files,
    files_below,
    finish,
    start,
)
from tests.support.paths import EXTRACTED

SOUND = "the house is old .\nit stands by a river .\n\na tree grows there .\nthe leaves are green .\n"
PART = "part-00000-of-00003"
ENDINGS = {"tfrecord": "tfrecord", "hdf5": "hdf5", "parquet": "parquet"}


@pytest.fixture
def part(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str | bytes, name: str = "part.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def create(bertdata: Program, small_vocabulary_file: Path, tmp_path: Path) -> Callable[..., Outcome]:
    """``bertdata create`` with small settings, into tmp_path/out."""

    def call(*arguments: object, vocab: Path = small_vocabulary_file) -> Outcome:
        return bertdata("create", "--output", tmp_path / "out", "--vocab", vocab, *SMALL, *arguments)

    return call


@pytest.fixture(scope="session")
def made(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """Datasets of the sample corpus, one for each container."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("made")
    for kind in ENDINGS:
        parts, vocabulary = map(str, corpus), str(small_vocabulary_file)
        output = ["--output", str(place / kind), "--vocab", vocabulary, "--format", kind]
        assert main(["create", *parts, *output, *SMALL]) == 0
    return place


@pytest.fixture
def dataset(made, tmp_path) -> Callable[[str], Path]:
    """A copy of a sound dataset, to be damaged."""
    return lambda kind="tfrecord": Path(shutil.copytree(made / kind, tmp_path / "dataset"))


# --- inputs -------------------------------------------------------------------------------------


def test_a_missing_part_is_wrong_usage_and_makes_nothing(create, tmp_path, corpus):
    create(corpus[0], tmp_path / "missing.txt").assert_one_error(2, "missing.txt", "no such file")
    assert files_below(tmp_path) == []


def test_a_pattern_without_a_file_is_wrong_usage(create, tmp_path):
    create(tmp_path / "part-*").assert_one_error(2, "part-*", "no such file")


def test_a_directory_as_a_part_is_wrong_usage_and_told_what_to_give(create, tmp_path, corpus):
    create(corpus[0].parent).assert_one_error(2, str(corpus[0].parent), "is a directory", "/*")
    assert files_below(tmp_path) == []


def test_parts_whose_shards_would_have_one_name_are_refused(create, part, tmp_path):
    for name in ("a/part.txt", "b/part.txt", "c/a-part.txt"):
        (tmp_path / name).parent.mkdir()
        part(SOUND, name)
    outcome = create(*tmp_path.glob("*/*part.txt"))
    outcome.assert_one_error(2, "a/part.txt and ", "c/a-part.txt", "the same shard, a-part.txt;")
    outcome = create(tmp_path / "a/part.txt", tmp_path / "b/../a/part.txt")
    outcome.assert_one_error(2, "a/part.txt: named twice, also as ", "b/../a/part.txt")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "\n\n \n"], ids=["no bytes", "blank lines"])
def test_an_empty_part_is_an_error_and_leaves_the_directory_free(text, create, part, tmp_path):
    create(part(text)).assert_one_error(1, "part.txt", "holds no sentences")
    assert files_below(tmp_path / "out") == []


def test_an_empty_part_costs_no_other_part_its_shard(create, part, tmp_path, corpus):
    empty = part("")
    outcome = create(corpus[0], empty)
    assert outcome.status == 1
    assert "part.txt: holds no sentences" in outcome.err
    shard = f"{PART}.tfrecord"
    assert files_below(tmp_path / "out") == [
        f"lengths/{shard}.u16",
        shard,
        f"unfinished/{shard}.json",
        "unfinished/plan.json",
    ]
    part(SOUND)
    again = create(corpus[0], empty)
    assert again.status == 0
    assert f"kept {shard}" in again.err
    assert files_below(tmp_path / "out") == dataset_files(shard, "part.txt.tfrecord")


def test_a_part_of_one_document_warns_of_its_labels_and_is_made(create, part, tmp_path):
    outcome = create(part(SOUND.replace("\n\n", "\n")))
    assert outcome.status == 0
    assert "warning" in outcome.err
    assert "part.txt: no blank line" in outcome.err
    assert "next-sentence labels" in outcome.err
    assert (tmp_path / "out" / "part.txt.tfrecord").stat().st_size > 0


def test_single_sentence_documents_warn_that_every_next_sentence_is_random(create, part, tmp_path):
    outcome = create(part(SOUND.replace("\n", "\n\n")))
    assert outcome.status == 0
    assert (
        "part.txt: every document is a single sentence, so every next sentence will be random" in outcome.err
    )
    assert (tmp_path / "out" / "part.txt.tfrecord").stat().st_size > 0


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("dialect", ["mlperf", "google", "nvidia"])
def test_invalid_utf8_is_an_error_that_names_the_line(dialect, engine, create, part, tmp_path):
    text = SOUND.encode().replace(b"leaves", b"lea\xffves")
    outcome = create(part(text), "--dialect", dialect, "--format", "tfrecord", "--engine", engine)
    outcome.assert_one_error(1, "part.txt: line 5: byte 0xff at offset", "not UTF-8")
    assert files_below(tmp_path / "out") == []


@pytest.mark.parametrize("engine", ["native", "python"])
def test_invalid_utf8_is_dropped_with_a_warning_for_graphcore(engine, create, part, tmp_path, bertdata):
    flags = ("--dialect", "graphcore", "--engine", engine)
    outcome = create(part(SOUND.encode().replace(b"leaves", b"lea\xff\xfeves")), *flags)
    assert outcome.status == 0
    assert "part.txt: line 5: the first of 2 bytes that are not UTF-8, all dropped" in outcome.err
    dropped = contents(tmp_path / "out")["part.txt.tfrecord"]
    shutil.rmtree(tmp_path / "out")
    assert create(part(SOUND), *flags).status == 0
    assert contents(tmp_path / "out")["part.txt.tfrecord"] == dropped


def test_after_invalid_utf8_the_same_directory_takes_the_dialect_that_drops_it(create, part):
    path = part(SOUND.encode() + b"\xff\n")
    assert create(path, "--dialect", "mlperf").status == 1
    assert create(path, "--dialect", "graphcore").status == 0


@pytest.mark.parametrize("engine", ["native", "python"])
def test_nul_bytes_are_dropped_with_a_warning_that_names_the_line(engine, create, part, tmp_path):
    outcome = create(
        part(SOUND.replace("river", "ri\0ver").replace("green", "\0green\0")), "--engine", engine
    )
    assert outcome.status == 0
    assert "part.txt: line 2: the first of 3 NUL bytes, all dropped" in outcome.err
    with_nuls = contents(tmp_path / "out")["part.txt.tfrecord"]
    shutil.rmtree(tmp_path / "out")
    assert create(part(SOUND)).status == 0
    assert contents(tmp_path / "out")["part.txt.tfrecord"] == with_nuls


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SOUND.replace("\n\n", "\n"), "no blank line"),
        (SOUND.replace("\n", "\n\n"), "every document is a single sentence"),
        (SOUND.replace("tree", "tr\0ee"), "line 4: the first of 1 NUL bytes"),
    ],
    ids=["one document", "single sentences", "NUL"],
)
def test_the_drop_in_command_gives_the_same_warnings(
    text, words, bertdata, part, small_vocabulary_file, tmp_path
):
    outcome = bertdata(
        "create-pretraining-data",
        f"--input_file={part(text)}",
        f"--vocab_file={small_vocabulary_file}",
        f"--output_file={tmp_path / 'out.tfrecord'}",
    )
    assert outcome.status == 0
    assert f"warning: {tmp_path / 'part.txt'}: {words}" in outcome.err
    assert (tmp_path / "out.tfrecord").stat().st_size > 0


# --- vocabularies -------------------------------------------------------------------------------


@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_a_vocabulary_without_a_special_token_is_named_with_the_token(
    token, create, part, small_vocabulary_file
):
    lines = small_vocabulary_file.read_text().splitlines()
    vocab = part("".join(f"{line}\n" for line in lines if line != token), "vocab.txt")
    create(part(SOUND), vocab=vocab).assert_one_error(1, "vocab.txt", f"lacks {token};")
    assert not (vocab.parent / "out").exists()


def test_an_empty_vocabulary_is_an_error(create, part):
    create(part(SOUND), vocab=part("", "vocab.txt")).assert_one_error(1, "vocab.txt", "is empty")


def test_a_vocabulary_that_is_no_text_is_named_with_the_line(create, part):
    vocab = part(b"[PAD]\n\xff\n", "vocab.txt")
    create(part(SOUND), vocab=vocab).assert_one_error(1, "vocab.txt: line 2", "not UTF-8")


def test_a_vocabulary_with_a_byte_order_mark_is_refused_by_that_name(create, part, tmp_path):
    marked = tmp_path / "marked.txt"
    marked.write_bytes(b"\xef\xbb\xbf[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    create(part(SOUND), vocab=marked).assert_one_error(1, str(marked), "lacks [PAD]", "byte-order mark")


@pytest.mark.parametrize("place", ["missing.txt", "folder"])
def test_a_missing_vocabulary_or_a_directory_is_wrong_usage(place, create, part, tmp_path):
    (tmp_path / "folder").mkdir()
    outcome = create(part(SOUND), vocab=tmp_path / place)
    outcome.assert_one_error(2, str(tmp_path / place), "directory")


@pytest.mark.parametrize("dialect", ["mlperf", "google", "nvidia", "graphcore"])
def test_a_vocabulary_with_windows_line_ends_makes_the_same_shards(
    dialect, create, part, small_vocabulary_file, tmp_path
):
    flags = (part(SOUND), "--dialect", dialect, "--format", "tfrecord")
    assert create(*flags).status == 0
    expected = contents(tmp_path / "out")["part.txt.tfrecord"]
    shutil.rmtree(tmp_path / "out")
    windows = part(small_vocabulary_file.read_bytes().replace(b"\n", b"\r\n"), "windows.txt")
    assert create(*flags, vocab=windows).status == 0
    assert contents(tmp_path / "out")["part.txt.tfrecord"] == expected


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--max-predictions-per-seq=65"],
            "--max-predictions-per-seq is 65, expected 1 to --max-seq-length (64)",
        ),
        (["--max-predictions-per-seq=0"], "--max-predictions-per-seq is 0"),
        (["--max-seq-length=4", "--max-predictions-per-seq=2"], "--max-seq-length is 4, expected 5 to 65535"),
        (["--max-seq-length=65536"], "--max-seq-length is 65536"),
        (["--masked-lm-prob=-0.1"], "--masked-lm-prob is -0.1, expected a probability from 0 to 1"),
        (["--masked-lm-prob=1.1"], "--masked-lm-prob is 1.1"),
        (["--masked-lm-prob=nan"], "--masked-lm-prob: 'nan' is not a number"),
        (["--short-seq-prob=-1e-9"], "--short-seq-prob is -1e-09"),
        (["--short-seq-prob=1.1"], "--short-seq-prob is 1.1"),
        (["--short-seq-prob=nan"], "--short-seq-prob: 'nan' is not a number"),
        (["--short-seq-prob=inf"], "--short-seq-prob is inf"),
        (["--dupe-factor=0"], "--dupe-factor is 0, expected 1 or more"),
        (["--dupe-factor=many"], "--dupe-factor: 'many' is not an integer"),
        (["--random-seed=1.5"], "--random-seed: '1.5' is not an integer"),
        (["--workers=0"], "--workers: '0' is out of range, expected 1 or more"),
        (
            ["--phase=3"],
            "recipe mlperf has one phase, phase 3 was asked for; nvidia, habana, graphcore, "
            "modernbert, ettin, neobert have two",
        ),
        (["--recipe=nvidia", "--phase=0"], "recipe nvidia has phases 1 and 2; phase 0 was asked for"),
        (["--recipe=nvidai"], "--recipe: invalid choice: 'nvidai' (choose from"),
        (["--dialect=mlprf"], "--dialect: invalid choice: 'mlprf' (choose from"),
        (["--format=tfrecords"], "--format: invalid choice: 'tfrecords' (choose from"),
        (["--remask", "--format=hdf5"], "remask needs the container tfrecord"),
        (["--remask"], "remask needs the dialect graphcore"),
        (["--recipe=graphcore", "--phase=1", "--remask", "--no-masks"], "remask orders masked positions"),
        (
            ["--recipe=none", "--dup-factor=3"],
            "--dup-factor is not a known flag; the nearest known is --dupe-factor",
        ),
        (["--max-seq=64"], "--max-seq is not a known flag; the nearest known is --max-seq-length"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_setting_out_of_its_range_is_wrong_usage_and_makes_nothing(flags, words, create, part, tmp_path):
    create(part(SOUND), *flags).assert_one_error(2, words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flag", ["--max-seq-length=64", "--max-predictions-per-seq=10"])
def test_half_a_shape_for_a_recipe_of_two_phases_is_wrong_usage(
    flag, bertdata, part, small_vocabulary_file, tmp_path
):
    outcome = bertdata(
        "create",
        part(SOUND),
        "--output",
        tmp_path / "out",
        "--vocab",
        small_vocabulary_file,
        "--recipe=nvidia",
        flag,
    )
    outcome.assert_one_error(2, "two phases", "--phase", "--max-seq-length and --max-predictions-per-seq")


def test_an_unknown_command_is_answered_with_the_nearest(bertdata):
    bertdata("crate").assert_one_error(2, "'crate' is no command; did you mean create?")
    bertdata("xyzzy").assert_one_error(2, "known are extract, ")


def test_an_unknown_recipe_is_answered_with_the_known(bertdata):
    bertdata("recipes", "nvidai").assert_one_error(2, "'nvidai'", "known are mlperf, google")


# --- output directories -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--dupe-factor=2"], "dupe_factor 1, now 2"),
        (["--format=hdf5"], "format 'tfrecord', now 'hdf5'"),
        (["--recipe=google"], "dialect 'mlperf', now 'google'; recipe 'mlperf', now 'google'"),
        (["--recipe=graphcore", "--phase=1"], "recipe 'mlperf', now 'graphcore phase 1'"),
    ],
)
def test_a_directory_of_other_settings_is_refused_untouched(flags, words, create, part, tmp_path):
    assert create(part(SOUND)).status == 0
    before = contents(tmp_path / "out")
    create(part(SOUND), *flags).assert_one_error(
        2, "out: was made with other settings", words, "remove this one"
    )
    assert contents(tmp_path / "out") == before


def test_a_directory_of_other_inputs_or_another_vocabulary_is_refused(create, part, small_vocabulary_file):
    assert create(part(SOUND)).status == 0
    create(part(SOUND), part(SOUND, "second.txt")).assert_one_error(2, "other inputs (second.txt)")
    longer = part(small_vocabulary_file.read_text() + "another\n", "vocab.txt")
    create(part(SOUND), vocab=longer).assert_one_error(2, "vocabulary", ", now ")


def test_naming_the_only_phase_of_a_recipe_makes_the_same_dataset(create, part, tmp_path):
    assert create(part(SOUND)).status == 0
    before = contents(tmp_path / "out")
    assert create(part(SOUND), "--phase=1").status == 0
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("begun", [False, True], ids=["finished", "begun"])
@pytest.mark.parametrize("flags", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_a_recipe_of_two_phases_is_refused_in_a_dataset_of_one(
    flags, begun, bertdata, part, small_vocabulary_file, tmp_path
):
    out = tmp_path / "out"
    common = ["--vocab", small_vocabulary_file, "--output", out, "--dupe-factor=1", "--workers=1"]
    parts = [part(SOUND), part(b"\xff", "bad.txt")] if begun else [part(SOUND)]
    assert bertdata("create", *parts, *common, "--recipe=google").status == int(begun)
    before = contents(out)
    assert "part.txt.tfrecord" in before
    bertdata("create", part(SOUND), *common, "--recipe=nvidia", *flags).assert_one_error(
        2, f"{out}: holds the dataset google in the directory itself", "nvidia phase 1", "remove this one"
    )
    assert contents(out) == before


def test_a_recipe_of_two_phases_is_refused_in_a_directory_of_another_kind(
    bertdata, part, small_vocabulary_file, punkt_tables, tmp_path
):
    text = tmp_path / "text"
    assert bertdata("segment", EXTRACTED, "--output", text, "--eval-articles=0", "--workers=1").status == 0
    command = ["create", part(SOUND), "--vocab", small_vocabulary_file, "--output", text]
    bertdata(*command, "--recipe=nvidia").assert_one_error(2, f"{text}: holds a directory of text")
    (tmp_path / "file").write_text("mine")
    command[-1] = tmp_path / "file"
    bertdata(*command, "--recipe=nvidia").assert_one_error(2, "file: is a file, expected a directory")


@pytest.mark.parametrize("flags", [("--recipe=google",), ("--recipe=nvidia", "--phase=1")])
def test_a_dataset_is_refused_around_the_phases_of_another(
    flags, bertdata, part, small_vocabulary_file, tmp_path
):
    out = tmp_path / "out"
    command = ["create", part(SOUND), "--vocab", small_vocabulary_file, "--output", out, "--dupe-factor=1"]
    assert bertdata(*command, "--recipe=nvidia").status == 0
    before = contents(out)
    bertdata(*command, *flags).assert_one_error(2, f"{out}: holds the dataset nvidia phase 1 in phase1")
    assert contents(out) == before
    assert bertdata(*command, "--recipe=nvidia").status == 0


def test_a_directory_that_holds_something_else_is_refused_untouched(create, part, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    create(part(SOUND)).assert_one_error(2, "out: is not empty", "thesis.tex", "choose another directory")
    assert contents(tmp_path / "out") == {"thesis.tex": b"mine"}


def test_a_file_in_place_of_the_output_directory_is_refused_untouched(create, part, tmp_path):
    (tmp_path / "out").write_text("mine")
    create(part(SOUND)).assert_one_error(2, "out: is a file, expected a directory")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_directory_that_cannot_be_made_is_an_error_that_names_it(
    bertdata, part, small_vocabulary_file, tmp_path
):
    below = part("a file") / "out"
    outcome = bertdata(
        "create", part(SOUND, "sound.txt"), "--output", below, "--vocab", small_vocabulary_file
    )
    outcome.assert_one_error(1, str(below), "Not a directory")


def test_an_empty_name_for_the_output_directory_is_wrong_usage(bertdata, part, small_vocabulary_file):
    outcome = bertdata("create", part(SOUND), "--output", "", "--vocab", small_vocabulary_file)
    outcome.assert_one_error(2, "output directory", "empty")


def test_a_target_in_a_missing_directory_is_told_before_any_work(
    bertdata, part, small_vocabulary_file, dataset, tmp_path
):
    missing, shard = tmp_path / "missing" / "file.hdf5", dataset() / f"{PART}.tfrecord"
    for command in (
        ["convert", shard, missing],
        ["pick-eval", shard, missing],
        ["train-vocab", part(SOUND), "--size=100", "--output", missing],
        [
            "create-pretraining-data",
            f"--input_file={part(SOUND)}",
            f"--vocab_file={small_vocabulary_file}",
            f"--output_file={tmp_path / 'whole'},{missing}",
        ],
    ):
        bertdata(*command).assert_one_error(
            2, f"{missing}: cannot be written: there is no directory {missing.parent}"
        )
    assert not (tmp_path / "whole").exists()


# --- a full disk --------------------------------------------------------------------------------


class FullDisk:
    """A file on a disk that has room for some bytes more; what does not fit shows at a write or the end."""

    def __init__(self, file: BinaryIO, room: int, late: bool) -> None:
        self._file, self._room, self._late = file, room, late

    def write(self, data: bytes) -> int:
        self._room -= len(data)
        if self._room < 0 and not self._late:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def close(self) -> None:
        self._file.close()
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("late", [False, True], ids=["at a write", "at the end"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tfrecord", "part.txt.tfrecord."),
        ("tfrecord", "part.txt.tfrecord.json"),
        ("hdf5", "part.txt.hdf5."),
        ("parquet", "part.txt.parquet."),
        ("tfrecord", "plan.json"),
        ("tfrecord", "MD5SUMS"),
        ("tfrecord", "manifest.json"),
    ],
)
def test_a_full_disk_leaves_no_half_file_and_the_next_run_goes_on(
    kind, name, late, create, part, tmp_path, monkeypatch
):
    sound = storage._create

    def full(path: str) -> BinaryIO | FullDisk:
        return FullDisk(sound(path), 16, late) if Path(path).name.startswith(name) else sound(path)

    arguments = (part(SOUND), "--format", kind)
    with monkeypatch.context() as patch:
        patch.setattr(storage, "_create", full)
        outcome = create(*arguments)
    assert outcome.status == 1
    error = outcome.err.splitlines()[-1]
    assert name.removesuffix(".") in error
    assert error.endswith("No space left on device")
    left = files_below(tmp_path / "out")
    assert not [file for file in left if file.endswith(".tmp") or file == "manifest.json"]
    assert create(*arguments).status == 0
    assert files_below(tmp_path / "out") == dataset_files(f"part.txt.{kind}")


@pytest.mark.parametrize("kind", list(ENDINGS))
def test_a_disk_that_really_refuses_more_bytes_is_named(kind, corpus, small_vocabulary_file, tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))  # noqa: E731
    process = start(
        "create",
        corpus[0],
        "--output",
        tmp_path / "out",
        "--vocab",
        small_vocabulary_file,
        *SMALL,
        "--format",
        kind,
        preexec_fn=limit,
    )
    finish(process).assert_one_error(1, "File too large")
    assert files_below(tmp_path / "out") == []


@pytest.mark.parametrize("command", [["recipes"], ["--version"], []])
def test_an_output_that_cannot_be_printed_is_an_error_without_a_traceback(command):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        process = start(*command)
        process.communicate()
        process = subprocess.Popen(process.args, stdout=full, stderr=subprocess.PIPE, text=True)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "standard output" in err
    assert "No space left on device" in err
    assert "Traceback" not in err


def test_a_reader_that_goes_away_ends_the_command_silently(dataset):
    process = start("show", dataset() / f"{PART}.tfrecord", "--num=1000")
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=30) == 1
    process.stderr.close()


# --- damaged shards -----------------------------------------------------------------------------


def truncate(data: bytes) -> tuple[bytes, str]:
    return data[:-5], "record 161: the file ends inside this record: truncated"


def cut_between_records(data: bytes) -> tuple[bytes, str]:
    return data[16 + record_lengths(data)[0] :], "161 records"


def flip_a_bit(data: bytes) -> tuple[bytes, str]:
    place = sum(16 + length for length in record_lengths(data)[:81]) + 100
    flipped = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
    return flipped, "record 81: the checksum of its data does not fit"


def record_lengths(data: bytes) -> list[int]:
    """The length of each record's payload."""
    lengths, place = [], 0
    while place < len(data):
        lengths.append(struct.unpack("<Q", data[place : place + 8])[0])
        place += 16 + lengths[-1]
    return lengths


def flip_the_length(data: bytes) -> tuple[bytes, str]:
    return data[:3] + b"\1" + data[4:], "record 0: the checksum of its length does not fit"


def lose_the_first_byte(data: bytes) -> tuple[bytes, str]:
    return data[1:], "record 0: the checksum of its length does not fit"


def add_a_record_of_something_else(data: bytes) -> tuple[bytes, str]:
    return data + frame_payload(b"no example"), "record 162: "


def add_a_line(data: bytes) -> tuple[bytes, str]:
    return data + b"hello\n", "record 162: the file ends inside this record: truncated"


DAMAGES = [
    truncate,
    flip_a_bit,
    flip_the_length,
    lose_the_first_byte,
    add_a_record_of_something_else,
    add_a_line,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_tfrecord_is_told_by_record_everywhere(damage, dataset, bertdata, tmp_path):
    directory = dataset()
    shard = directory / f"{PART}.tfrecord"
    damaged, words = damage(shard.read_bytes())
    shard.write_bytes(damaged)
    for right, command in (
        (2, ["verify-md5", directory]),
        (6, ["verify-md5", directory / "MD5SUMS"]),  # which lists the lengths and the manifest
        (2, ["verify-md5", directory, "--content"]),
    ):
        outcome = bertdata(*command)
        assert outcome.status == 1
        assert outcome.out.startswith(f"{shard}: ")
        assert words in outcome.out.splitlines()[0]
        assert outcome.out.endswith(f"{right} files right, 1 fault\n")
    for command in (
        ["show", shard, "--index=161", "--num=9"],
        ["md5", "--content", shard],
        ["convert", shard, tmp_path / "new.hdf5"],
        ["pick-eval", shard, tmp_path / "new"],
    ):
        bertdata(*command).assert_one_error(1, f"{shard}: {words}")
    assert files_below(tmp_path) == [f"dataset/{name}" for name in files_below(directory)]


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_both_engines_name_the_same_record(damage, engine, dataset, bertdata):
    shard = dataset() / f"{PART}.tfrecord"
    damaged, words = damage(shard.read_bytes())
    shard.write_bytes(damaged)
    bertdata("md5", "--content", shard, "--engine", engine).assert_one_error(1, f"{shard}: {words}")


def test_a_shard_that_lacks_whole_records_is_another_file(dataset, bertdata):
    directory = dataset()
    shard = directory / f"{PART}.tfrecord"
    shard.write_bytes(cut_between_records(shard.read_bytes())[0])
    outcome = bertdata("verify-md5", directory)
    assert outcome.status == 1
    assert "wrong size: found" in outcome.out
    assert "each of its 161 records can be read" in outcome.out


@pytest.mark.parametrize("kind", list(ENDINGS))
def test_an_empty_shard_is_a_fault(kind, dataset, bertdata):
    directory = dataset(kind)
    shard = directory / f"{PART}.{kind}"
    shard.write_bytes(b"")
    outcome = bertdata("verify-md5", directory)
    assert outcome.status == 1
    assert f"{shard}: wrong size: found 0 bytes" in outcome.out
    assert "it is empty" in outcome.out
    bertdata("show", shard).assert_one_error(1, f"{shard}: holds no records")


@pytest.mark.parametrize("kind", ["hdf5", "parquet"])
def test_a_flipped_byte_in_hdf5_and_parquet_is_told_by_record(kind, dataset, bertdata, tmp_path):
    directory = dataset(kind)
    shard = directory / f"{PART}.{kind}"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4] = b"\xff\0\xff\0"
    shard.write_bytes(data)
    for flags in ([], ["--content"]):
        outcome = bertdata("verify-md5", directory, *flags)
        assert outcome.status == 1
        assert outcome.out.startswith(f"{shard}: ")
        assert "record 0: " in outcome.out
    for command in (["show", shard], ["convert", shard, tmp_path / "new.tfrecord"]):
        bertdata(*command).assert_one_error(1, f"{shard}: record 0: ", "cannot be read")
    assert not (tmp_path / "new.tfrecord").exists()


@pytest.mark.parametrize("cut", [slice(0, -700), slice(0, 100), slice(4, None)], ids=["tail", "most", "head"])
@pytest.mark.parametrize("kind", ["hdf5", "parquet"])
def test_a_truncated_hdf5_or_parquet_is_told_everywhere(kind, cut, dataset, bertdata, tmp_path):
    directory = dataset(kind)
    shard = directory / f"{PART}.{kind}"
    shard.write_bytes(shard.read_bytes()[cut])
    outcome = bertdata("verify-md5", directory)
    assert outcome.status == 1
    assert outcome.out.startswith(f"{shard}: wrong size: found")
    for command in (
        ["show", shard],
        ["convert", shard, tmp_path / "new.tfrecord"],
        ["md5", "--content", shard],
    ):
        bertdata(*command).assert_one_error(1, f"{shard}: ")
    assert not (tmp_path / "new.tfrecord").exists()


# --- manifests and md5sum files -----------------------------------------------------------------


def test_a_missing_and_an_extra_file_are_both_told(dataset, bertdata):
    directory = dataset()
    (directory / f"{PART}.tfrecord").unlink()
    (directory / "notes").mkdir()
    (directory / "notes" / "today.txt").write_text("x")
    outcome = bertdata("verify-md5", directory)
    assert outcome.status == 1
    assert outcome.out.splitlines() == [
        f"{directory / f'{PART}.tfrecord'}: missing",
        f"{directory / 'notes' / 'today.txt'}: extra; the manifest does not list it",
        f"{directory}: 2 files right, 2 faults",
    ]


def test_a_missing_manifest_is_a_fault_since_md5sums_lists_it(dataset, bertdata):
    directory = dataset()
    (directory / "manifest.json").unlink()
    for flags in ((), ("--content",)):
        outcome = bertdata("verify-md5", directory, *flags)
        assert outcome.status == 1
        assert outcome.out.splitlines() == [
            f"{directory}/manifest.json: missing",
            f"{directory}/MD5SUMS: 6 files right, 1 fault",
        ]
    assert subprocess.run(["md5sum", "-c", "MD5SUMS"], cwd=directory, capture_output=True).returncode == 1


@pytest.mark.parametrize("content", [(), ("--content",)], ids=["bytes", "content"])
def test_an_edited_manifest_is_a_fault_by_md5sums_too(dataset, bertdata, content):
    directory = dataset()
    edit(directory, lambda manifest: manifest.update(recipe="mine"))
    outcome = bertdata("verify-md5", directory / "MD5SUMS", *content)
    assert (outcome.status, outcome.out.splitlines()[0].partition(": found")[0]) == (
        1,
        f"{directory}/manifest.json: wrong md5",
    )
    assert bertdata("verify-md5", directory).out.splitlines()[-2].startswith(f"{directory}/MD5SUMS: differs")


def test_md5sums_without_the_manifests_line_are_a_fault_and_alone_they_are_sound(dataset, bertdata):
    directory = dataset()
    lines = (directory / "MD5SUMS").read_text().splitlines(keepends=True)
    assert [line.split()[1] for line in lines][-1] == "manifest.json"
    (directory / "MD5SUMS").write_text("".join(lines[:-1]))
    faults = bertdata("verify-md5", directory).out.splitlines()
    assert faults[0].startswith(f"{directory}/MD5SUMS: differs")
    (directory / "manifest.json").unlink()
    assert bertdata("verify-md5", directory).out == f"{directory}/MD5SUMS: 6 files right, sound\n"
    (directory / "MD5SUMS").unlink()
    bertdata("verify-md5", directory).assert_one_error(1, "holds neither manifest.json nor MD5SUMS")


def edit(directory: Path, change: Callable[[dict], None]) -> None:
    manifest = json.loads((directory / "manifest.json").read_text())
    change(manifest)
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["shards"].pop(), "extra; the manifest does not list it"),
        (lambda m: m["shards"][0].update(name="other"), "other: missing"),
        (lambda m: m["settings"]["objective"].update(dupe_factor=7), "wrong settings digest"),
        (lambda m: m["totals"].update(examples=7), "manifest.json: edited"),
        (lambda m: m["shards"].reverse(), "MD5SUMS: differs"),
        (lambda m: m["shards"][0].update(md5="0" * 32), f"{PART}.tfrecord: wrong md5"),
    ],
    ids=["shard left out", "shard renamed", "setting", "total", "order", "md5"],
)
def test_an_edited_manifest_is_found_out(change, words, dataset, bertdata):
    directory = dataset()
    edit(directory, change)
    outcome = bertdata("verify-md5", directory)
    assert outcome.status == 1
    assert words in outcome.out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda m: m.update(format_version=4, future="x"),
            "format version 4, this program reads 2 and 3; use the",
        ),
        (
            lambda m: m["inputs"].pop(),
            "part-00002-of-00003.tfrecord is made from 'part-00002-of-00003', which is no",
        ),
        (lambda m: m["shards"][0].update(examples="3"), "shards/0/examples: '3' is not of type 'integer'"),
        (lambda m: m["shards"][0].update(md5="zz"), "shards/0/md5: 'zz'"),
        (lambda m: m.pop("settings"), "'settings' is a required property"),
    ],
    ids=["future version", "input left out", "text for number", "no md5", "no settings"],
)
def test_a_manifest_that_makes_no_sense_is_refused_by_all_that_read_it(
    change, words, dataset, bertdata, corpus, small_vocabulary_file
):
    directory = dataset()
    edit(directory, change)
    shard, before = directory / f"{PART}.tfrecord", contents(directory)
    for command in (
        ["verify-md5", directory],
        ["show", shard, "--vocab", small_vocabulary_file],
        ["create", *corpus, "--output", directory, "--vocab", small_vocabulary_file, *SMALL],
    ):
        bertdata(*command).assert_one_error(1, "manifest.json: ", words)
    assert contents(directory) == before


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"{}", b"\xff", b'{"format_version": null}'])
def test_a_manifest_that_is_no_manifest_is_an_error(text, dataset, bertdata):
    directory = dataset()
    (directory / "manifest.json").write_bytes(text)
    bertdata("verify-md5", directory).assert_one_error(1, f"{directory / 'manifest.json'}: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "lists no file"),
        (b"\n\n", "lists no file"),
        (b"%s  a\nd41d8  b\n" % (b"0" * 32), "line 2: found 'd41d8  b', expected an md5, two spaces, a name"),
        (b"%s\n" % (b"0" * 32), "line 1: found"),
        (b"\xff\xfe", "is not text; expected a dataset directory, a manifest.json or an md5sum file"),
    ],
)
def test_a_broken_md5sum_file_is_told_by_line(text, words, bertdata, part):
    bertdata("verify-md5", part(text, "MD5SUMS")).assert_one_error(1, "MD5SUMS: ", words)


def test_what_cannot_be_verified_is_wrong_usage_or_an_error(bertdata, tmp_path, dataset):
    bertdata("verify-md5", tmp_path / "missing").assert_one_error(2, "missing: no such file or directory")
    bertdata("verify-md5", tmp_path).assert_one_error(1, "holds neither manifest.json nor MD5SUMS")
    bertdata("verify-md5", dataset() / f"{PART}.tfrecord").assert_one_error(1, "is not text")
    (tmp_path / "out" / "unfinished").mkdir(parents=True)
    (tmp_path / "out" / "unfinished" / "plan.json").write_text("{}")
    bertdata("verify-md5", tmp_path / "out").assert_one_error(1, "is unfinished", "run the command")


# --- interrupted runs ---------------------------------------------------------------------------


@pytest.fixture
def six_parts(corpus, tmp_path) -> list[Path]:
    """Enough work that no worker is idle when the first shard is finished."""
    copies = [shutil.copy(part, tmp_path / f"{part.name}-again") for part in corpus]
    return [*corpus, *map(Path, copies)]


@pytest.fixture
def slow_run(six_parts, small_vocabulary_file, tmp_path) -> Iterator[Callable[[int], subprocess.Popen]]:
    """``create`` with the slow engine, started, and one shard finished."""
    processes = []

    def call(workers: int) -> subprocess.Popen:
        command = create_all(six_parts, small_vocabulary_file, tmp_path)
        process = start(*command, "--engine=python", f"--workers={workers}", start_new_session=True)
        processes.append(process)
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob("out/unfinished/part-*.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return process

    yield call
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def create_all(parts: list[Path], vocabulary: Path, place: Path) -> list[object]:
    return [
        "create",
        *parts,
        "--output",
        place / "out",
        "--vocab",
        vocabulary,
        "--max-seq-length=64",
        "--max-predictions-per-seq=10",
        "--dupe-factor=8",
    ]


def assert_only_finished_shards(directory: Path) -> None:
    """Finished shards, their lengths and entries, the plan; the end may fall between two of a shard's files.

    A killed run leaves its lock file too, which locks nothing.
    """
    left = set(files_below(directory))
    shards = {name for name in left if "/" not in name}
    entries = {name for name in left if name.startswith("unfinished/part-")}
    lengths = {name for name in left if name.startswith("lengths/part-")}
    assert left - shards - lengths - entries - {"unfinished/run.lock"} == {"unfinished/plan.json"}
    assert entries
    assert lengths <= {f"lengths/{name}.u16" for name in shards}
    assert entries <= {f"unfinished/{name[8:-4]}.json" for name in lengths}


def assert_goes_on(bertdata: Program, parts: list[Path], vocabulary: Path, place: Path) -> None:
    """The same command, run again, keeps what is finished and ends with an undisturbed run's bytes."""
    finished = len(list(place.glob("out/unfinished/part-*.json")))
    outcome = bertdata(*create_all(parts, vocabulary, place), "--workers=1")
    assert outcome.status == 0
    assert outcome.err.count("kept part-") == finished >= 1
    undisturbed = place / "undisturbed"
    undisturbed.mkdir()
    assert bertdata(*create_all(parts, vocabulary, undisturbed), "--workers=1").status == 0
    assert contents(place / "out") == contents(undisturbed / "out")


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    if not listed.exists():
        pytest.skip("this system does not list a process's children")
    return [
        pid
        for pid in map(int, listed.read_text().split())
        if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def assert_gone(processes: list[int]) -> None:
    deadline = time.monotonic() + 20
    while alive := [pid for pid in processes if is_running(pid)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_finished_shards_and_leaves_no_temporary_file(
    workers, slow_run, bertdata, six_parts, small_vocabulary_file, tmp_path
):
    process = slow_run(workers)
    workers_alive = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all
    outcome = finish(process)
    assert outcome.status == 130
    assert outcome.err.splitlines()[-1] == (
        "bertdata: interrupted; what is finished is kept, run the same command to go on"
    )
    assert "Traceback" not in outcome.err
    assert_gone(workers_alive)
    assert_only_finished_shards(tmp_path / "out")
    assert_goes_on(bertdata, six_parts, small_vocabulary_file, tmp_path)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_dies_ends_the_run_with_an_error(
    how, slow_run, bertdata, six_parts, small_vocabulary_file, tmp_path
):
    process = slow_run(2)
    workers = children(process.pid)
    os.kill(workers[0], how)
    outcome = finish(process)
    assert outcome.status == 1
    assert "bertdata: error: a worker process died" in outcome.err.splitlines()[-1]
    assert "run the same command again" in outcome.err
    assert_gone(workers)
    assert_goes_on(bertdata, six_parts, small_vocabulary_file, tmp_path)


def test_sigterm_ends_the_run_and_its_workers_as_ctrl_c_does(slow_run, tmp_path):
    process = slow_run(2)
    workers = children(process.pid)
    process.terminate()
    outcome = finish(process)
    assert outcome.status == 128 + signal.SIGTERM
    assert "interrupted" in outcome.err.splitlines()[-1]
    assert_gone(workers)
    assert_only_finished_shards(tmp_path / "out")


def test_workers_do_not_outlive_a_killed_run(slow_run, tmp_path):
    process = slow_run(2)
    workers = children(process.pid)
    assert len(workers) == 2
    process.kill()
    assert_gone(workers)
    assert_only_finished_shards(tmp_path / "out")


def test_an_interrupted_run_that_finished_nothing_leaves_the_directory_free(
    create, part, tmp_path, monkeypatch
):
    from bertdata.steps import create as step

    def interrupt(job: object, tell: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(step, "run_task", interrupt)
        assert create(part(SOUND)).status == 130
    assert files_below(tmp_path / "out") == []
    assert create(part(SOUND), "--dupe-factor=2").status == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["create", "--fomat=hdf5"], "--fomat is not a known flag; the nearest known is --format"),
        (["segment", "--ouput", "x", "--zzz"], "nearest known is --output; --zzz is not a known flag"),
        (["md5", "--contnt"], "--contnt is not a known flag; the nearest known is --content"),
        (["stats"], "the following arguments are required: DIR"),
        (["md5", "-q", "x"], "unrecognized arguments: -q"),
    ],
)
def test_an_unknown_flag_is_named_though_a_required_one_is_missing(words, told, bertdata):
    bertdata(*words).assert_one_error(2, told)


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("create", "--output"),
        ("create", "--recipe"),
        ("segment", "--output"),
        ("train-vocab", "--size"),
        ("create-pretraining-data", "--vocab_file"),
    ],
)
def test_two_dashes_are_no_value_of_a_flag(bertdata: Program, part: Callable[..., Path], command, flag):
    needed = {
        "train-vocab": ["--size=300", "--output=v.txt"],
        "create-pretraining-data": ["--input_file=a", "--output_file=b"],
    }
    words = [] if command == "create-pretraining-data" else [part(SOUND)]
    outcome = bertdata(command, *words, *needed.get(command, []), f"{flag}=--")
    assert outcome.status == 2
    assert f"argument {flag}: '--' is no value" in outcome.err
