"""CPU time of making SQuAD's training features in one thread, compared with transformers' run_qa.py.

The input is 1,190 questions of the reference kit. A feature has 384 tokens, and consecutive features of a
context begin 128 tokens apart. run_qa.py uses a fast tokenizer and finds the answers' positions from its
offsets. Its features are simpler than those of BERT's run_squad.py: it does not tighten answers to whole
tokens, and does not compute in which span a token has the most context.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import corpus, measure

LENGTH, STRIDE = 384, 128
ROUNDS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class SquadEntry:
    """A question of a file, with its context and its first answer.

    answer: the answer's range of characters in the context: first, and after the last.
    """

    id: str
    question: str
    context: str
    answer: tuple[int, int]


def make_our_counter(path: Path, vocabulary: Path) -> Callable[[], int]:
    """Return a function that makes the features with this project and returns their number of ids."""
    from bertdata.tokens.load import load_tokenizer
    from trainer.tasks.data_file import read_file
    from trainer.tasks.squad.features import SquadSettings, make_features
    from trainer.tasks.squad.reading import read_squad

    settings = SquadSettings(max_seq_length=LENGTH, doc_stride=STRIDE, training=True)
    tokenizer = load_tokenizer(str(vocabulary), settings.dialect, settings.lower_case)

    def run() -> int:
        """Make the features and return their number of ids."""
        features = make_features(
            read_squad(read_file(str(path)), training=True).questions, tokenizer, settings
        )
        return sum(len(one.ids(tokenizer.vocabulary)) for one in features)

    return run


def make_transformers_counter(path: Path, vocabulary: Path) -> Callable[[], int]:
    """Return a function that makes the features with transformers' tokenizer and returns their number of ids.

    Padding is not counted. The offsets give the answers' positions.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast(str(vocabulary), do_lower_case=True)

    def run() -> int:
        """Make the features and return their number of ids."""
        entries = read_entries(path)
        found = tokenizer(
            [entry.question for entry in entries],
            [entry.context for entry in entries],
            truncation="only_second",
            max_length=LENGTH,
            # The library tokenizers calls the number of tokens that two spans have in common the stride.
            stride=STRIDE,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        for number, example in enumerate(found["overflow_to_sample_mapping"]):
            offsets, segments = found["offset_mapping"][number], found.sequence_ids(number)
            find_answer_positions(offsets, segments, *entries[example].answer)
        return sum(map(len, found["input_ids"]))

    return run


def read_entries(path: Path) -> list[SquadEntry]:
    """Return the questions of a file that have at least one answer."""
    return [
        SquadEntry(
            id=entry["id"],
            question=entry["question"],
            context=paragraph["context"],
            answer=_find_characters(entry["answers"][0]),
        )
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]
        for paragraph in article["paragraphs"]
        for entry in paragraph["qas"]
    ]


def _find_characters(answer: dict[str, Any]) -> tuple[int, int]:
    """Return the range of an answer's characters in the context: first, and after the last."""
    start = int(answer["answer_start"])
    return start, start + len(answer["text"])


def find_answer_positions(
    offsets: list[tuple[int, int]], segments: list[int | None], start: int, end: int
) -> tuple[int, int]:
    """Return the first and the last token of an answer in a feature.

    Returns (0, 0) if the feature does not contain the whole answer.

    offsets: range of characters of each token.
    segments: 0 for a token of the question, 1 for a token of the context, None for a special token.
    start: first character of the answer in the context.
    end: character after the answer's last character.
    """
    first, last = segments.index(1), len(segments) - 1 - segments[::-1].index(1)
    if offsets[first][0] > start or offsets[last][1] < end:
        return 0, 0
    while first < len(offsets) and offsets[first][0] <= start:
        first += 1
    while offsets[last][1] >= end:
        last -= 1
    return first - 1, last + 1


def main() -> None:
    """Print both speeds."""
    kit = corpus.find_kit()
    assert kit is not None, "needs the reference kit"
    path, vocabulary = kit / "squad" / "xquad.en.json", kit / "vocab" / "bert-base-uncased.txt"
    passes = {
        "bertdata": make_our_counter(path, vocabulary),
        "transformers": make_transformers_counter(path, vocabulary),
    }
    seconds = dict.fromkeys(passes, float("inf"))
    for _ in range(ROUNDS):  # measure in turns, so that other work on the machine affects both
        for name, run in passes.items():
            seconds[name] = min(seconds[name], measure.measure_best_cpu(run, repeats=1))
    print("features of 1,190 questions of SQuAD at 384/128 for training, CPU seconds:")
    for name, spent in seconds.items():
        print(f"  {name:<14} {spent:6.3f} ({spent / seconds['bertdata']:.1f} times)")


if __name__ == "__main__":
    main()
