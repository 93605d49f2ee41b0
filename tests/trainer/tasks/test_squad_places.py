"""Answers keep their letters with every tokeniser; features are cut as Hugging Face's run_qa.py cuts them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import transformers
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors, trainers

from bertdata.errors import InputError, SettingsError
from bertdata.tokens.load import tokenizer_of
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from tests.support.tokenizer_files import train_wordpiece
from trainer.config.sections.finetuning import FinetuningSection
from trainer.tasks.data_file import DataFile
from trainer.tasks.squad.answers import predict_answers, select_best_logits
from trainer.tasks.squad.features import SquadSettings, make_features
from trainer.tasks.squad.metrics import score_answers
from trainer.tasks.squad.reading import read_squad

CONTEXT = (
    "The city of Berlin is big. Ada saw cafe\u0301 İstanbul, ﬁve… ½ cup in \u2460 e\u0301té x\u0301y abc123 "
    "“cafe\u0301” ＡＢＣ ｶﾞ ㌔ \u1100\u1161\u11a8 नि क्षि Zürich"
)
"""Accents apart from their letters, ligatures, wide and half-wide letters, jamo, vowel signs."""

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BYTES = pre_tokenizers.ByteLevel
BLANK = pre_tokenizers.WhitespaceSplit()
BPE, UNIGRAM, WORDPIECE = models.BPE, models.Unigram, models.WordPiece

KINDS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "blanks, then bytes": (BPE, [], [BLANK, BYTES(add_prefix_space=True)]),
    "digits, then bytes": (BPE, [], [pre_tokenizers.Digits(), BYTES(add_prefix_space=True)]),
    "bytes": (BPE, [], [BYTES(add_prefix_space=True)]),
    "bytes, NFC": (BPE, [normalizers.NFC()], [BYTES(add_prefix_space=False)]),
    "bytes, NFKC": (BPE, [normalizers.NFKC()], [BYTES(add_prefix_space=False)]),
    "bytes, NFKD, lower case": (
        BPE,
        [normalizers.NFKD(), normalizers.Lowercase()],
        [BYTES(add_prefix_space=False)],
    ),
    "accents stripped": (
        BPE,
        [normalizers.NFD(), normalizers.StripAccents()],
        [BYTES(add_prefix_space=False)],
    ),
    "vowels left out": (BPE, [normalizers.Replace(Regex("[aeiou]"), "")], [BYTES(add_prefix_space=False)]),
    "metaspace in the normaliser": (
        BPE,
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")],
        [pre_tokenizers.Metaspace(prepend_scheme="never")],
    ),
    "unigram, NFKC": (UNIGRAM, [normalizers.NFKC()], [pre_tokenizers.Metaspace()]),
    "unigram, blanks": (UNIGRAM, [normalizers.Nmt()], [BLANK, pre_tokenizers.Metaspace()]),
    "BERT's": (WORDPIECE, [normalizers.BertNormalizer(lowercase=True)], [pre_tokenizers.BertPreTokenizer()]),
    "words, NFKC": (WORDPIECE, [normalizers.NFKC()], [BLANK, pre_tokenizers.Punctuation()]),
}


def tokenizer_of_kind(kind: str, folder: Path, *more: Any) -> Tokenizer:
    """A tokeniser trained on the context. Its post-processor trims offsets, as RoBERTa's does."""
    model, normaliser, steps = KINDS[kind]
    common = {"special_tokens": SPECIAL, "show_progress": False}
    if model is UNIGRAM:
        trained = tokenizers.Tokenizer(models.Unigram())
        trainer: Any = trainers.UnigramTrainer(vocab_size=150, unk_token="<unk>", **common)
    elif model is WORDPIECE:
        trained = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
        trainer = trainers.WordPieceTrainer(vocab_size=300, **common)
    else:
        trained = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
        trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=BYTES.alphabet(), **common)
    if normaliser or more:
        trained.normalizer = normalizers.Sequence([*normaliser, *more])
    trained.pre_tokenizer = pre_tokenizers.Sequence(steps)
    trained.train_from_iterator([CONTEXT] * 5, trainer)
    trained.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True
    )
    trained.save(str(folder / "tokenizer.json"))
    return tokenizer_of(find_tokenizer_json(str(folder / "tokenizer.json"), {}))


def squad(context: str, *answers: list[dict[str, Any]], question: str = "Which one?") -> DataFile:
    entries = [
        {"id": str(number), "question": question, "answers": given} for number, given in enumerate(answers)
    ]
    return DataFile(
        "q.json", json.dumps({"data": [{"paragraphs": [{"context": context, "qas": entries}]}]}).encode()
    )


def word_answers(context: str) -> list[list[dict[str, Any]]]:
    """Each word of the context as the answer of a question of its own."""
    found, place = [], 0
    for word in context.split():
        place = context.index(word, place)
        found.append([{"text": word, "answer_start": place}])
        place += len(word)
    return found


def said(source: DataFile, tokenizer: Tokenizer, settings: SquadSettings) -> dict[str, str]:
    """The answers of a model that has learned the positions of every training feature."""
    questions = read_squad(source, training=True, first_answer=settings.first_answer).questions
    features = make_features(questions, tokenizer, settings)
    logits = np.zeros((len(features), settings.max_seq_length, 2), np.float32)
    for row, feature in enumerate(features):
        logits[row, feature.start, 0] = logits[row, feature.end, 1] = 9.0
    keys = FinetuningSection(task="squad")
    found = predict_answers(questions, features, select_best_logits(logits, 20), tokenizer.vocabulary, keys)
    assert score_answers(questions, {name: one.answer for name, one in found.items()})["exact_match"] == 100
    return {name: one.answer for name, one in found.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_learned_answer_has_all_its_letters(kind: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of_kind(kind, tmp_path)
    settings = SquadSettings(max_seq_length=400, max_query_length=32, training=True)
    found = said(squad(CONTEXT, *word_answers(CONTEXT)), tokenizer, settings)
    assert list(found.values()) == CONTEXT.split()


def test_ideographs_that_a_normaliser_leaves_out_are_no_part_of_an_answer(tmp_path: Path) -> None:
    left_out = normalizers.Replace(Regex("[他在住了很多年]"), "")
    tokenizer = tokenizer_of_kind("bytes", tmp_path, left_out)
    source = squad("他在北京住了很多年", [{"text": "北京", "answer_start": 2}], question="北")
    settings = SquadSettings(max_seq_length=32, max_query_length=8, training=True)
    assert said(source, tokenizer, settings) == {"0": "北京"}


def test_an_answer_is_where_the_data_say_it_is(tmp_path: Path) -> None:
    tokenizer = tokenizer_of_kind("digits, then bytes", tmp_path)
    source = squad("abc,abc", [{"text": "abc", "answer_start": 4}])
    settings = SquadSettings(max_seq_length=64, max_query_length=32, training=True)
    questions = read_squad(source, training=True).questions
    (feature,) = make_features(questions, tokenizer, settings)
    assert feature.context.places is not None
    place = feature.context.places[feature.start - feature.document]  # type: ignore[operator]
    assert place.tolist()[0] == 4


def test_the_first_of_several_answers_is_learned_where_that_is_asked_for() -> None:
    several = [{"text": "b", "answer_start": 2}, {"text": "c", "answer_start": 4}]
    source = squad("a b c", several, [])
    with pytest.raises(InputError, match="has 2 answers, expected exactly 1 for training; --first-answer"):
        read_squad(source, training=True)
    found = read_squad(source, training=True, first_answer=True).questions
    assert [one.answer and one.answer.text for one in found] == ["b", None]
    assert [one.is_impossible for one in found] == [False, True]


def test_features_with_an_overlap_and_whole_questions_are_those_of_run_qa(tmp_path: Path) -> None:
    words = " ".join(f"word{number} is here ," for number in range(90))
    file = train_wordpiece(tmp_path / "tokenizer.json", [words, "which of them is the one ?"])
    tokenizer = tokenizer_of(find_tokenizer_json(str(file), {}))
    library = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file), pad_token="[PAD]")
    question = "which of them is the one ? " * 12
    source = squad(words, [{"text": "word7", "answer_start": words.index("word7")}], question=question)
    settings = SquadSettings(max_seq_length=192, doc_overlap=40, max_query_length=0, training=True)
    # The call of run_qa.py's prepare_train_features.
    expected = library(
        question,
        words,
        truncation="only_second",
        max_length=192,
        stride=40,
        return_overflowing_tokens=True,
    )["input_ids"]
    assert len(expected) > 3
    assert len(library(question, add_special_tokens=False)["input_ids"]) > 64
    features = make_features(read_squad(source, training=True).questions, tokenizer, settings)
    assert [one.ids(tokenizer.vocabulary) for one in features] == expected


def test_a_question_without_room_for_its_context_is_named(tmp_path: Path) -> None:
    file = train_wordpiece(tmp_path / "tokenizer.json", ["a b c d e f"])
    tokenizer = tokenizer_of(find_tokenizer_json(str(file), {}))
    source = squad("a b c d", [{"text": "b", "answer_start": 2}], question="a b c d e f a b")
    questions = read_squad(source, training=True).questions
    for overlap, needs in ((None, "1 or more"), (2, "more than doc_overlap, 2")):
        length = 11 if overlap is None else 13
        settings = SquadSettings(max_seq_length=length, max_query_length=0, doc_overlap=overlap)
        with pytest.raises(SettingsError, match=f"question 0: its 8 tokens leave room for .*{needs}"):
            make_features(questions, tokenizer, settings)


def test_settings_of_before_keep_their_names_in_a_manifest() -> None:
    assert not {"doc_overlap", "first_answer"} & SquadSettings().as_json().keys()
    found = SquadSettings(doc_overlap=9, first_answer=True).as_json()
    assert (found["doc_overlap"], found["first_answer"]) == (9, True)
