"""Statistics of a dataset's examples: quantiles, and the counts of pairs and answers."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.config.dialects import find_dialect
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.examples.bert.objective import warn_of_single_sentences
from bertdata.examples.counting import find_quantile
from bertdata.examples.objective import Totals
from bertdata.examples.objectives import find_objective
from bertdata.examples.squad.batch import SquadBatch, SquadExample
from bertdata.records import ShardLayout
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import tokenize_text


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 100))
def test_a_quantile_is_the_smallest_number_with_so_many_at_or_below_it(numbers, percent):
    def is_reached(number: int) -> bool:
        return 100 * sum(one <= number for one in numbers) >= percent * len(numbers)

    assert find_quantile(Counter(numbers), percent) == min(one for one in numbers if is_reached(one))


def totals_of(examples: list, layout: ShardLayout) -> Totals:
    tokens = sum(len(example.ids) for example in examples)
    return Totals(layout=layout, examples=len(examples), tokens=tokens, mask_id=4, settings={})


def test_segments_and_labels_of_pairs_are_counted():
    examples = [
        BertExample(ids=[2, 7, 3, 8, 3], first_length=3, positions=[1], labels=[9], next_label=0),
        BertExample(ids=[2, 7, 7, 3, 8, 8, 3], first_length=4, positions=[2], labels=[9], next_label=1),
        BertExample(ids=[2, 7, 3, 8, 8, 8, 8, 3], first_length=3, positions=[3], labels=[9], next_label=1),
    ]
    layout = ShardLayout(max_seq_length=8, max_predictions_per_seq=2)
    counts = find_objective("bert").counts()
    counts.add(BertBatch.of(examples[:1], wide=False))
    other = find_objective("bert").counts()
    other.add(BertBatch.of(examples[1:], wide=False))
    counts.merge(other)
    found = counts.findings(totals_of(examples, layout))
    rows = dict(found.rows)
    assert rows["  segments"] == "mean 3.3 and 3.3 tokens, [CLS] and [SEP] included"  # 10 and 10 of 3
    assert rows["next sentence"] == "66.67% random"


def test_answers_and_their_tokens_are_counted():
    def example(start: int, end: int, impossible: bool) -> SquadExample:
        return SquadExample(
            ids=[2, 7, 3, 8, 8, 8, 3],
            first_length=3,
            answer_start=start,
            answer_end=end,
            impossible=impossible,
        )

    examples = [example(3, 3, False), example(3, 5, False), example(0, 0, True), example(0, 0, False)]
    layout = ShardLayout(max_seq_length=8, max_predictions_per_seq=1, objective="squad")
    counts = find_objective("squad").counts()
    counts.add(SquadBatch.of(examples[:1], wide=False))
    other = find_objective("squad").counts()
    other.add(SquadBatch.of(examples[1:], wide=False))
    counts.merge(other)
    found = counts.findings(totals_of(examples, layout))
    assert dict(found.rows) == {"with answer": "2 of 4, mean 2.0 tokens", "impossible": "1"}  # 1 and 3 tokens
    assert found.sections == {"answers": {"with_answer": 2, "mean_tokens": 2.0, "impossible": 1}}


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([3], "no blank line, so the text is one document"),
        ([1], "every document is a single sentence"),
        ([1, 1, 1], "every document is a single sentence"),
        ([1] * 19 + [2], "95.0% of the documents are a single sentence"),
        ([1] * 9 + [2], None),  # 90 %
        ([1, 5, 2], None),
    ],
)
def test_documents_that_say_little_about_next_sentences_are_warned_of(sizes, told):
    sentences = b"\n\n".join(b"word\n" * size for size in sizes)
    vocabulary = parse_vocabulary(
        b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n", "words", find_dialect("google")
    )
    documents = tokenize_text(sentences, vocabulary, find_dialect("google"))
    warnings = warn_of_single_sentences(documents, "a.txt")
    assert [warning.startswith(f"a.txt: {told}") for warning in warnings] == [True] * (told is not None)
