"""Training features of SQuAD: ours beside a fast tokeniser of transformers, used as its run_qa.py does.

1,190 questions of the reference kit at 384/128, one thread. The peer's features are not the originals': it
gives the offsets of its tokens, from which the answers' positions are found, and neither tightened answers
nor the maximum context.
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
    """A question of a file. answer: its first answer's characters in the context, first and last + 1."""

    id: str
    question: str
    context: str
    answer: tuple[int, int]


def make_our_counter(path: Path, vocabulary: Path) -> Callable[[], int]:
    """A function that makes features with this project and returns their number of ids."""
    from bertdata.tokens.load import load_tokenizer
    from trainer.tasks.data_file import read_file
    from trainer.tasks.squad.features import SquadSettings, make_features
    from trainer.tasks.squad.reading import read_squad

    settings = SquadSettings(max_seq_length=LENGTH, doc_stride=STRIDE, training=True)
    tokenizer = load_tokenizer(str(vocabulary), settings.dialect, settings.lower_case)

    def run() -> int:
        features = make_features(
            read_squad(read_file(str(path)), training=True).questions, tokenizer, settings
        )
        return sum(len(one.ids(tokenizer.vocabulary)) for one in features)

    return run


def make_transformers_counter(path: Path, vocabulary: Path) -> Callable[[], int]:
    """The same with transformers' tokeniser, whose offsets give the answers' positions. Counts real ids."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast(str(vocabulary), do_lower_case=True)

    def run() -> int:
        entries = read_entries(path)
        found = tokenizer(
            [entry.question for entry in entries],
            [entry.context for entry in entries],
            truncation="only_second",
            max_length=LENGTH,
            stride=STRIDE,  # here the tokens that two spans share
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        for number, example in enumerate(found["overflow_to_sample_mapping"]):
            offsets, segments = found["offset_mapping"][number], found.sequence_ids(number)
            find_answer_positions(offsets, segments, *entries[example].answer)
        return sum(map(len, found["input_ids"]))

    return run


def read_entries(path: Path) -> list[SquadEntry]:
    """The questions of a file, each with one answer at least."""
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
    start = int(answer["answer_start"])
    return start, start + len(answer["text"])


def find_answer_positions(
    offsets: list[tuple[int, int]], segments: list[int | None], start: int, end: int
) -> tuple[int, int]:
    """First and last token of the answer in the second segment, or 0 and 0 where it is not all there."""
    first, last = segments.index(1), len(segments) - 1 - segments[::-1].index(1)
    if offsets[first][0] > start or offsets[last][1] < end:
        return 0, 0
    while first < len(offsets) and offsets[first][0] <= start:
        first += 1
    while offsets[last][1] >= end:
        last -= 1
    return first - 1, last + 1


def main() -> None:
    kit = corpus.find_kit()
    assert kit is not None, "needs the reference kit"
    path, vocabulary = kit / "squad" / "xquad.en.json", kit / "vocab" / "bert-base-uncased.txt"
    passes = {
        "bertdata": make_our_counter(path, vocabulary),
        "transformers": make_transformers_counter(path, vocabulary),
    }
    seconds = dict.fromkeys(passes, float("inf"))
    for _ in range(ROUNDS):  # in turns, so that what else the machine does falls on both
        for name, run in passes.items():
            seconds[name] = min(seconds[name], measure.measure_best_cpu(run, repeats=1))
    print("features of 1,190 questions of SQuAD at 384/128 for training, CPU seconds:")
    for name, spent in seconds.items():
        print(f"  {name:<14} {spent:6.3f} ({spent / seconds['bertdata']:.1f} times)")


if __name__ == "__main__":
    main()
