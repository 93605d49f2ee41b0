"""Training features of SQuAD: ours beside a fast tokeniser of transformers, used as its run_qa.py does.

1,190 questions of the reference kit at 384/128, one thread. The peer's features are not the originals': it
gives the offsets of its tokens, from which the answers' positions are found, and neither tightened answers
nor the maximum context.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

from benchmarks import corpus, measure

LENGTH, STRIDE = 384, 128
ROUNDS = 5


def ours(path: Path, vocabulary: Path) -> Callable[[], int]:
    """Features by this project; their number."""
    from bertdata.tokens.load import load_tokenizer
    from trainer.tasks.squad.features import make_features
    from trainer.tasks.squad.reading import read_squad
    from trainer.tasks.squad.settings import SquadSettings

    settings = SquadSettings(max_seq_length=LENGTH, doc_stride=STRIDE, training=True)
    tokenizer = load_tokenizer(str(vocabulary), settings.dialect, settings.lower_case)

    def run() -> int:
        features = make_features(read_squad(str(path), training=True).questions, tokenizer, settings)
        return sum(len(one.ids(tokenizer.vocabulary)) for one in features)

    return run


def transformers(path: Path, vocabulary: Path) -> Callable[[], int]:
    """Features by transformers' tokeniser, the answers' positions by its offsets; real ids of all."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast(str(vocabulary), do_lower_case=True)

    def run() -> int:
        questions, contexts, answers = _read(path)
        found = tokenizer(
            questions,
            contexts,
            truncation="only_second",
            max_length=LENGTH,
            stride=STRIDE,  # here the tokens that two spans share
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        for number, example in enumerate(found["overflow_to_sample_mapping"]):
            _positions(found["offset_mapping"][number], found.sequence_ids(number), *answers[example])
        return sum(map(len, found["input_ids"]))

    return run


def _read(path: Path) -> tuple[list[str], list[str], list[tuple[int, int]]]:
    questions, contexts, answers = [], [], []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                (answer,) = entry["answers"]
                questions.append(entry["question"])
                contexts.append(paragraph["context"])
                answers.append((answer["answer_start"], answer["answer_start"] + len(answer["text"])))
    return questions, contexts, answers


def _positions(
    offsets: list[tuple[int, int]], segments: list[int | None], start: int, end: int
) -> tuple[int, int]:
    """First and last token of the answer in the second segment; 0 and 0 where it is not all there."""
    first, last = segments.index(1), len(segments) - 1 - segments[::-1].index(1)
    if offsets[first][0] > start or offsets[last][1] < end:
        return 0, 0
    while first < len(offsets) and offsets[first][0] <= start:
        first += 1
    while offsets[last][1] >= end:
        last -= 1
    return first - 1, last + 1


def main() -> None:
    kit = corpus.kit()
    assert kit is not None, "needs the reference kit"
    path, vocabulary = kit / "squad" / "xquad.en.json", kit / "vocab" / "bert-base-uncased.txt"
    passes = {"bertdata": ours(path, vocabulary), "transformers": transformers(path, vocabulary)}
    seconds = dict.fromkeys(passes, float("inf"))
    for _ in range(ROUNDS):  # in turns, so that what else the machine does falls on both
        for name, run in passes.items():
            seconds[name] = min(seconds[name], measure.best_cpu(run, repeats=1))
    print("features of 1,190 questions of SQuAD at 384/128 for training, CPU seconds:")
    for name, spent in seconds.items():
        print(f"  {name:<14} {spent:6.3f} ({spent / seconds['bertdata']:.1f} times)")


if __name__ == "__main__":
    main()
