"""Between the texts of a pair stand as many separators as the tokeniser puts there."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from bertdata.errors import SettingsError, VocabularyError
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.tokens.load import tokenizer_of
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from tests.support.fine_tuning import squad_file
from tests.support.tokenizer_files import TRAINERS
from tests.support.training_runs import Trainer, refuse
from trainer.tasks.classification.features import make_features as pair_features
from trainer.tasks.classification.reading import TextPair
from trainer.tasks.data_file import DataFile, read_file
from trainer.tasks.feature_set import make_feature_set_name
from trainer.tasks.squad.features import SquadSettings, make_features
from trainer.tasks.squad.reading import read_squad

FIRST, SECOND = "Étienne saw the lamp of the harbour, and left it.", "It was a lamp! " * 5
ROBERTA = {"sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": False}


def template(between: int) -> dict[str, Any]:
    """ModernBERT's post-processor, with so many separators between the texts."""
    cls, sep = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ("<s>", "</s>"))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [cls, first, sep],
        "pair": [cls, first, *[sep] * between, second, sep],
        "special_tokens": {
            token: {"id": token, "ids": [number], "tokens": [token]}
            for token, number in (("<s>", 0), ("</s>", 2))
        },
    }


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
PROCESSORS = {
    "roberta": (2, {"type": "RobertaProcessing", **ROBERTA}),
    "bert": (1, {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}),
    "one": (1, template(1)),
    "two": (2, template(2)),
    "three": (3, template(3)),
    "sequence": (2, {"type": "Sequence", "processors": [BYTE_LEVEL, template(2)]}),
    "nothing": (1, None),
    "other": (1, BYTE_LEVEL),
    "no pair": (1, {**template(1), "pair": [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]}),
}
WITH_PAIRS = [name for name in PROCESSORS if name not in ("nothing", "other", "no pair")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tokenizer.json of each kind, and one of BPE with each post-processor."""
    folder = tmp_path_factory.mktemp("files")
    lines = [FIRST, SECOND, *(str(number) for number in range(200))]
    found = {kind: train(folder / f"{kind}.json", lines, 400) for kind, train in TRAINERS.items()}
    value = json.loads(found["bpe"].read_text(encoding="utf-8"))
    for name, (_, processor) in PROCESSORS.items():
        found[name] = folder / f"{name}.json"
        found[name].write_text(json.dumps({**value, "post_processor": processor}), encoding="utf-8")
    return found


def opened(path: Path) -> Tokenizer:
    return tokenizer_of(find_tokenizer_json(str(path), {}))


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_post_processor_tells_the_separators(name: str, files: dict[str, Path]) -> None:
    assert opened(files[name]).vocabulary.pair_separators == PROCESSORS[name][0]


@pytest.mark.parametrize("damage", [{"pair": [5, "A"]}, {"pair": 7}, {"single": [["A"]]}, {"single": 1.5}])
def test_a_damaged_template_is_refused_as_the_library_does(
    damage: dict[str, Any], files: dict[str, Path], tmp_path: Path
) -> None:
    value = json.loads(files["one"].read_text(encoding="utf-8"))
    damaged = tmp_path / "damaged.json"
    damaged.write_text(json.dumps({**value, "post_processor": {**template(1), **damage}}), encoding="utf-8")
    with pytest.raises(VocabularyError, match="the tokenizers library refuses it") as caught:
        opened(damaged)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [*WITH_PAIRS, "unigram", "wordpiece"])
@pytest.mark.parametrize("length", [96, 24])
def test_pairs_have_the_ids_of_transformers(name: str, length: int, files: dict[str, Path]) -> None:
    """Room for an even number: Google gives the first text an odd one, transformers the longer."""
    tokenizer = opened(files[name])
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(files[name]))
    for first, second in ((FIRST, SECOND), (SECOND, FIRST), (FIRST, "lamp"), ("lamp", SECOND)):
        room = length - theirs.num_special_tokens_to_add(pair=True)
        cut = length - room % 2
        (feature,) = pair_features([TextPair(first, second, "", "a line")], [0], tokenizer, cut)
        expected = theirs(first, second, truncation="longest_first", max_length=cut)
        assert feature.ids == expected["input_ids"]
        separators = tokenizer.vocabulary.pair_separators
        assert (
            feature.ids[feature.first_length - separators : feature.first_length]
            == [tokenizer.vocabulary.sep] * separators
        )


@pytest.mark.parametrize("name", [*WITH_PAIRS, "unigram", "wordpiece"])
def test_windows_of_a_context_have_the_ids_of_transformers(name: str, files: dict[str, Path]) -> None:
    tokenizer = opened(files[name])
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(files[name]))
    entry = {"id": "0", "question": "lamp ?", "answers": [{"text": "lamp", "answer_start": 9}]}
    data = {"data": [{"paragraphs": [{"context": SECOND.strip(), "qas": [entry]}]}]}
    asked = read_squad(
        DataFile("questions", json.dumps(data).encode()), training=True, negatives=False
    ).questions
    settings = SquadSettings(max_seq_length=24, doc_stride=5, max_query_length=12, training=True)
    features = make_features(asked, tokenizer, settings)
    query = len(theirs("lamp ?", add_special_tokens=False)["input_ids"])
    room = 24 - query - theirs.num_special_tokens_to_add(pair=True)
    limits = {"max_length": 24, "stride": room - 5, "return_overflowing_tokens": True}
    expected = theirs("lamp ?", SECOND.strip(), truncation="only_second", **limits)["input_ids"]
    assert [one.ids(tokenizer.vocabulary) for one in features] == expected
    assert len(features) > 2
    for one in features:
        assert one.document + one.span.length + 1 == len(one.ids(tokenizer.vocabulary))
        assert one.start is not None
        if one.start:
            assert one.start >= one.document
    answer = features[0].ids(tokenizer.vocabulary)[features[0].start : (features[0].end or 0) + 1]
    assert theirs.decode(answer).strip(" \u2581") == "lamp"


def test_the_longest_question_leaves_room_for_a_token(files: dict[str, Path]) -> None:
    data = {"data": [{"paragraphs": [{"context": "lamp", "qas": [{"id": "0", "question": SECOND}]}]}]}
    asked = read_squad(
        DataFile("questions", json.dumps(data).encode()), training=False, negatives=False
    ).questions
    settings = SquadSettings(max_seq_length=20, max_query_length=16)
    assert make_features(asked, opened(files["one"]), settings)
    with pytest.raises(
        SettingsError, match=r"max_query_length is 16, expected at most max_seq_length - 5 \(15\)"
    ):
        make_features(asked, opened(files["two"]), settings)


def test_a_kept_set_with_one_separator_is_not_taken_for_one_with_two(
    files: dict[str, Path], trainer: Trainer, tmp_path: Path
) -> None:
    source = squad_file(tmp_path / "train.json")
    given = ("features", "--task=squad", source, f"--vocab={files['two']}", "--max-seq-length=64")
    sizes = ("--max-query-length=16", f"--dataset={tmp_path / 'set'}")
    assert trainer(*given, *sizes).status == 0
    manifest = tmp_path / "set" / MANIFEST_NAME
    found = json.loads(manifest.read_text(encoding="utf-8"))
    assert found["settings"]["objective"].pop("pair_separators") == 2
    assert trainer(*given, *sizes).out.startswith(f"{tmp_path / 'set'}: kept ")
    manifest.write_text(json.dumps(found), encoding="utf-8")
    refuse(trainer(*given, *sizes), 2, "was made with other settings: pair_separators")
    settings = SquadSettings()
    names = {
        make_feature_set_name(read_file(str(source)), opened(files[name]).vocabulary, settings)
        for name in ("one", "two", "three")
    }
    assert len(names) == 3
    (tmp_path / "one.json").write_bytes(files["one"].read_bytes())
    given = ("features", "--task=squad", source, f"--vocab={tmp_path / 'one.json'}", "--max-query-length=16")
    assert trainer(*given, f"--dataset={tmp_path / 'one'}").status == 0
    found = json.loads((tmp_path / "one" / MANIFEST_NAME).read_text(encoding="utf-8"))
    assert "pair_separators" not in found["settings"]["objective"]
