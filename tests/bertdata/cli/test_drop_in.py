"""What MLPerf's and Google's script accepts, the drop-in accepts, with the script's examples.

The originals' own figures are of ordinary settings; each test here has settings under which the original
makes the same examples, but for padding.
"""

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bertdata.cli.common.script_examples import ScriptSettings
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.bert.reference import ReferenceExamples
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.shards.containers import open_reader
from bertdata.shards.example_proto import decode_example, encode_example
from bertdata.shards.framing import frame_payload, read_payloads
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import tokenize_text
from golden.cases import Case, load_case, make
from tests.support.commands import Outcome
from tests.support.example_flags import script_flags
from tests.support.paths import GOLDEN

ENGINES = ("native", "python")
ORIGINALS = json.loads((GOLDEN / "originals.json").read_text(encoding="utf-8"))["examples"]
PER_MASK = ("masked_lm_ids", "masked_lm_positions", "masked_lm_weights")


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


@pytest.fixture
def drop_in(bertdata, tmp_path) -> Callable[..., Outcome]:
    """Runs the drop-in on a golden case; the result is in ``out.tfrecord``."""

    def run(case: Case, *flags: str, inputs: str = "", vocabulary: Path = GOLDEN / "vocab.txt") -> Outcome:
        inputs = inputs or ",".join(str(GOLDEN / name) for name in case.inputs)
        places = [f"--input_file={inputs}", f"--output_file={tmp_path / 'out.tfrecord'}"]
        words = [*places, f"--vocab_file={vocabulary}", *script_flags(case.settings), *flags]
        return bertdata("create-pretraining-data", *words)

    return run


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("limit", [17, 20, 300])
def test_a_limit_of_masks_above_the_length_only_adds_padding(limit, engine, drop_in, tmp_path):
    case = load_case("mlperf-short")  # 16 ids, of which 15 % are 2, and at most 4 masks
    flags = (f"--max_predictions_per_seq={limit}", f"--engine={engine}")
    outcome = drop_in(case, *flags)
    assert outcome.status == 0
    [warning] = outcome.err.splitlines()  # 16 ids hold few of the text's, which has nothing to do with masks
    assert "is in no example" in warning
    written = (tmp_path / "out.tfrecord").read_bytes()
    original = b""
    for payload in read_payloads(io.BytesIO(written), "out"):
        features = decode_example(payload)
        for name in PER_MASK:
            assert len(features[name]) == limit
            assert not any(features[name][4:])
            features[name] = features[name][:4]
        original += frame_payload(encode_example(features))
    assert md5(original) == ORIGINALS["mlperf-short"]["content_md5"]
    with open_reader(str(tmp_path / "out.tfrecord"), engine) as reader:
        assert sum(len(batch) for batch in reader.batches(7)) == ORIGINALS["mlperf-short"]["examples"]


@pytest.mark.parametrize("limit", ["0", "-3"])
def test_without_masks_both_engines_write_the_same_empty_lists(limit, drop_in, tmp_path):
    case, written = load_case("mlperf-short"), []
    for engine in ENGINES:
        assert drop_in(case, f"--max_predictions_per_seq={limit}", f"--engine={engine}").status == 0
        written.append((tmp_path / "out.tfrecord").read_bytes())
    assert written[0] == written[1]
    payloads = list(read_payloads(io.BytesIO(written[0]), "out"))
    assert payloads
    for payload in payloads:
        features = decode_example(payload)
        assert [list(features[name] or ()) for name in PER_MASK] == [[], [], []]
        assert sum(features["input_mask"]) > 3


def test_create_still_refuses_a_limit_above_the_length(bertdata, tmp_path):
    flags = ["--max-seq-length=16", "--max-predictions-per-seq=20", "--vocab", GOLDEN / "vocab.txt"]
    outcome = bertdata("create", GOLDEN / "odd.txt", "--output", tmp_path / "out", *flags)
    outcome.assert_one_error(2, "--max-predictions-per-seq is 20, expected 1 to --max-seq-length (16)")


@pytest.mark.parametrize(
    ("given", "raw"),
    [
        (["--masked_lm_prob=1.5"], {"masked_lm_prob": 1.5}),
        (["--masked_lm_prob=-1"], {"masked_lm_prob": -1.0}),
        (["--short_seq_prob=7"], {"short_seq_prob": 7.0}),
        (["--short_seq_prob=-0.5"], {"short_seq_prob": -0.5}),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_share_outside_0_to_1_makes_what_the_algorithm_makes_of_it(
    given, raw, engine, drop_in, tmp_path, monkeypatch
):
    case = load_case("mlperf-short")
    assert drop_in(case, *given, f"--engine={engine}").status == 0
    settings = ScriptSettings(**case.settings.as_json())
    monkeypatch.setattr(MaskingSettings, "__post_init__", lambda self: None)
    for name, value in raw.items():
        object.__setattr__(settings, name, value)  # which the settings themselves refuse
    vocabulary = parse_vocabulary((GOLDEN / "vocab.txt").read_bytes(), "vocab.txt", settings.rules)
    text = b"".join((GOLDEN / name).read_bytes() for name in case.inputs)
    documents = tokenize_text(text, vocabulary, settings.rules)
    expected = ReferenceExamples(documents, vocabulary, settings, BertBatch)
    with open_reader(str(tmp_path / "out.tfrecord")) as reader:
        found = [example for batch in reader.batches(100) for example in batch.examples()]
    assert found == list(expected.batch(0, len(expected)).examples())


# --- vocabularies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["mlperf", "google", "google-whole-words"])
def test_a_vocabulary_without_pad_gives_the_originals_examples_and_a_warning(name, engine, drop_in, tmp_path):
    vocabulary = (
        tmp_path / "vocab.txt"
    )  # no program looks [PAD] up: another word in its place changes nothing
    words = (GOLDEN / "vocab.txt").read_text(encoding="utf-8")
    assert words.startswith("[PAD]\n")
    vocabulary.write_text(words.replace("[PAD]", "[padding]", 1), encoding="utf-8")
    outcome = drop_in(load_case(name), f"--engine={engine}", vocabulary=vocabulary)
    assert outcome.status == 0
    told = "lacks [PAD]; examples are padded with id 0, which is '[padding]' here"
    assert outcome.err == f"bertdata: warning: {vocabulary}: {told}\n"
    assert md5((tmp_path / "out.tfrecord").read_bytes()) == ORIGINALS[name]["content_md5"]


@pytest.mark.parametrize("token", ["[UNK]", "[CLS]", "[SEP]", "[MASK]"])
def test_a_vocabulary_without_another_special_token_is_refused(token, drop_in, tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text((GOLDEN / "vocab.txt").read_text(encoding="utf-8").replace(token, "[other]", 1))
    drop_in(load_case("mlperf"), vocabulary=vocabulary).assert_one_error(1, f"lacks {token};")
    assert not (tmp_path / "out.tfrecord").exists()


# --- lists of files -------------------------------------------------------------------------------


def test_empty_names_between_commas_are_left_out_with_a_warning(bertdata, tmp_path):
    odd, out = GOLDEN / "odd.txt", tmp_path / "out"
    places = [f"--input_file={odd},", f"--output_file={out},", f"--vocab_file={GOLDEN / 'vocab.txt'}"]
    outcome = bertdata("create-pretraining-data", *places)
    assert outcome.status == 0
    assert outcome.err.splitlines() == [
        f"bertdata: warning: --input_file={odd},: a name between commas is empty; it is left out",
        f"bertdata: warning: --output_file={out},: a name between commas is empty; it is left out",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("names", ["", ",", ",,"])
def test_a_list_without_any_name_is_an_error(names, bertdata, tmp_path):
    places = {"--input_file": GOLDEN / "odd.txt", "--output_file": tmp_path / "out"}
    for flag in places:
        words = [f"{name}={place}" for name, place in {**places, flag: names}.items()]
        outcome = bertdata("create-pretraining-data", *words, f"--vocab_file={GOLDEN / 'vocab.txt'}")
        assert outcome.status == 2
        assert f"bertdata: error: {flag}={names}: names no file" in outcome.err


def test_a_pattern_that_names_nothing_is_left_out_with_a_warning(drop_in, tmp_path):
    case, absent = load_case("mlperf"), tmp_path / "absent-*"
    outcome = drop_in(case, inputs=f"{absent},{GOLDEN / case.inputs[0]}")
    assert outcome.status == 0
    told = f"{absent}: no such file or directory; it is left out, as by the script"
    assert outcome.err == f"bertdata: warning: {told}\n"
    assert md5((tmp_path / "out.tfrecord").read_bytes()) == ORIGINALS["mlperf"]["content_md5"]


def test_a_patterns_files_are_sorted_and_a_hidden_file_is_not_among_them(drop_in, tmp_path):
    case = replace(load_case("mlperf-short"), inputs=("single.txt", "odd.txt"))
    place = tmp_path / "in"
    place.mkdir()
    for name, source in (("b", "odd.txt"), ("a", "single.txt"), (".a", "odd.txt")):
        (place / name).write_bytes((GOLDEN / source).read_bytes())
    assert drop_in(case, inputs=f"{place}/*").status == 0
    assert md5((tmp_path / "out.tfrecord").read_bytes()) == ORIGINALS["mlperf-short"]["content_md5"]


# --- Graphcore's order ----------------------------------------------------------------------------


@pytest.fixture
def halves(tmp_path) -> str:
    """The input of Graphcore's golden case as two files; a document begins in one and ends in the other."""
    lines = (GOLDEN / "odd.txt").read_bytes().splitlines(keepends=True)
    middle = next(i for i in range(len(lines) // 2, len(lines)) if lines[i - 1].strip() and lines[i].strip())
    paths = [tmp_path / "first", tmp_path / "second"]
    for path, half in zip(paths, (lines[:middle], lines[middle:]), strict=True):
        path.write_bytes(b"".join(half))
    return ",".join(map(str, paths))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["graphcore", "graphcore-remasked"])
def test_several_inputs_are_one_sequence_in_graphcores_order_too(name, engine, halves, drop_in, tmp_path):
    case = load_case(name)
    assert case.inputs == ("odd.txt",)
    assert drop_in(case, f"--engine={engine}", inputs=halves).status == 0
    assert md5((tmp_path / "out.tfrecord").read_bytes()) == ORIGINALS[name]["content_md5"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("flag", ["--pad-position-value", "--pad_position_value"])
@pytest.mark.parametrize("position", [0, 128, 511, 70_000])
def test_the_position_in_empty_slots_is_the_one_given(position, flag, engine, drop_in, tmp_path):
    case = load_case("graphcore-remasked")
    assert drop_in(case, f"{flag}={position}", f"--engine={engine}").status == 0
    original, changed = b"", 0
    for payload in read_payloads(io.BytesIO((tmp_path / "out.tfrecord").read_bytes()), "out"):
        features = decode_example(payload)
        first, last = features["mask_padding_index"][0], features["seq_padding_index"][0]
        empty = [
            *range(first, case.settings.max_predictions_per_seq),
            *range(last, len(features["input_ids"])),
        ]
        for slot in empty:
            assert features["input_position"][slot] == position
            features["input_position"][slot] = 384
        changed += len(empty)
        original += frame_payload(encode_example(features))
    assert changed
    assert md5(original) == ORIGINALS["graphcore-remasked"]["content_md5"]


@pytest.mark.parametrize("position", [384, 511])
def test_examples_are_read_whatever_position_their_empty_slots_have(position, drop_in, bertdata, tmp_path):
    case = load_case("graphcore-remasked")
    assert drop_in(case, f"--pad_position_value={position}").status == 0
    with open_reader(str(tmp_path / "out.tfrecord")) as reader:
        found = [example for batch in reader.batches(100) for example in batch.examples()]
    examples, _ = make(case, "native")
    assert found == list(examples.batch(0, len(examples)).examples())
    usual = tmp_path / "usual.tfrecord"
    assert bertdata("convert", tmp_path / "out.tfrecord", usual).status == 0
    assert md5(usual.read_bytes()) == ORIGINALS["graphcore"]["content_md5"]


def test_a_record_whose_empty_slots_differ_is_refused(drop_in, bertdata, tmp_path):
    assert drop_in(load_case("graphcore-remasked")).status == 0
    payload = next(iter(read_payloads(io.BytesIO((tmp_path / "out.tfrecord").read_bytes()), "out")))
    features = decode_example(payload)
    features["input_position"][features["mask_padding_index"][0]] += 1
    (tmp_path / "odd.tfrecord").write_bytes(frame_payload(encode_example(features)))
    bertdata("show", tmp_path / "odd.tfrecord").assert_one_error(1, "record 0", "input_position")


@pytest.mark.parametrize("position", [-1, 1 << 21])
def test_a_position_that_no_record_holds_is_refused(position, drop_in):
    outcome = drop_in(load_case("graphcore-remasked"), f"--pad_position_value={position}")
    outcome.assert_one_error(2, f"pad_position_value is {position}, expected 0 to 2097151")
