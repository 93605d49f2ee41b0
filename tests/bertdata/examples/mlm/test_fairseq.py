"""Blocks beside fairseq's own, of the kit's text: all break modes, lengths and both tokenisers."""

from array import array
from itertools import accumulate

import pytest

from bertdata.examples.mlm.blocks import cut_blocks
from bertdata.examples.mlm.make import make_blocks
from bertdata.examples.mlm.reference import cut_text_blocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.records import Documents, Vocabulary
from tests.support.encoders_kit import END, START, WORD_PIECES, Lines, md5_of_rows, oracle


@pytest.mark.parametrize("name", ["eval__W", "eval__B", "part0__W", "part0__B"])
def test_the_ids_are_those_that_fairseq_read(name, lines, encoders):
    assert md5_of_rows(lines[name]) == oracle(encoders / "ids.json")[name]["md5"]


def test_every_block_is_fairseqs(lines, encoders):
    """With the blank lines, each an end token, and with lines that are too long left whole."""
    cases = oracle(encoders / "fairseq" / "blocks.json")
    for case, wanted in cases.items():
        text, tokens, breaks, length = case.split("__")
        ended = [[*line, END] for line in lines[f"{text}__{tokens}"]]
        stream = [token for line in ended for token in line]
        spans = list(cut_blocks(list(map(len, ended)), breaks, int(length) - 1))
        rows = [[START, *stream[start:end]] for start, end in spans]
        assert (len(rows), sum(map(len, rows))) == (wanted["blocks"], wanted["tokens"]), case
        assert md5_of_rows(rows) == wanted["md5"], case
    assert len(cases) == 36


def as_documents(lines: Lines) -> Documents:
    """The lines as a tokeniser hands them over: a blank line ends a document."""
    sentences, ends, kept = [], [], 0
    for line in [*lines, []]:
        if line:
            sentences.append(line)
        elif len(sentences) > kept:
            kept = len(sentences)
            ends.append(kept)
    return Documents(
        ids=array("H", [token for line in sentences for token in line]),
        sentence_ends=array("I", accumulate(map(len, sentences))),
        document_ends=array("I", ends),
    )


def vocabulary_of(size: int) -> Vocabulary:
    """RoBERTa's layout: [CLS] is 0, [SEP] 2, [UNK] 3, [MASK] the last."""
    return Vocabulary(
        name="roberta",
        md5="",
        words=[f"w{token}" for token in range(size)],
        continues_word=bytes(size),
        replacements=tuple(range(size)),
        cls=START,
        sep=END,
        mask=size - 1,
        unk=3,
    )


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", ["eval__W", "eval__B", "part0__W", "part0__B"])
def test_examples_of_whole_sentences_of_a_document_are_fairseqs_blocks(name, engine, lines, encoders):
    """The objective's own way, through documents: no line of these is too long for 512 ids."""
    wanted = oracle(encoders / "fairseq" / "blocks.json")[f"{name}__complete_doc__512"]
    documents = as_documents(lines[name])
    vocabulary = vocabulary_of(30_522 if name.endswith(WORD_PIECES) else 3_072)
    rows = cut_text_blocks(documents, vocabulary, "complete_doc", 512)
    assert md5_of_rows(rows) == wanted["md5"]
    made = make_blocks(documents, vocabulary, MlmSettings(masks=False), engine)
    ids = [example.ids for example in made.batch(0, len(made)).examples()]
    assert sorted(ids) == sorted(rows)
    assert ids != rows  # examples are shuffled
