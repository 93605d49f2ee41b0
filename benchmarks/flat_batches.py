"""Training step on flat batches beside padded rows, in phase 1 and 2, compiled and not, on one core.

The steps are the trainer's own, in fp32 with dropout, on the same generated examples, whose fill (tokens
over those of full sequences) is that of real data. Rows compute their padding. All take turns, and the least
CPU time of each batch counts, because other work only adds to it.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import torch

from benchmarks.training import cpu_seconds, ours
from bertdata.records import ShardLayout
from trainer.data.batches import Batch, FlatBatch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.padded_rows import RowForm

PHASES = {"128/20": (32, 0.9), "512/80": (16, 0.5)}
"""Batch size and fill, by the layout."""

BATCHES, ROUNDS = 2, 3
_DRAWN = 24


def find_batches(layout: ShardLayout, batch_size: int, fill: float) -> dict[str, list[Batch]]:
    """The same examples as flat batches, all of one token budget, and as rows."""
    data = generate_data(layout, vocabulary_size=30522, seed=1, fill=fill)
    forms = {"flat": make_form(Rows(data), batch_size=batch_size), "rows": RowForm()}
    drawn: dict[str, list[Batch]] = {}
    for name, form in forms.items():
        loader = Loader(Rows(data), form=form, batch_size=batch_size)
        drawn[name] = [update.batches[0] for update in islice(loader, _DRAWN)]
        loader.close()
    sizes = [len(batch.input_ids) for batch in drawn["flat"]]
    most = Counter(sizes).most_common(1)[0][0]
    chosen = [number for number, size in enumerate(sizes) if size == most][:BATCHES]
    return {name: [batches[number] for number in chosen] for name, batches in drawn.items()}


def step_seconds(batches: dict[str, list[Batch]], batch_size: int, compiled: bool) -> dict[str, float]:
    """CPU seconds of a step, by the form of its batch."""
    steps = {name: ours(batch_size, compiled=compiled) for name in batches}
    for name, step in steps.items():
        step(batches[name][0])
    least: dict[str, list[float]] = {name: [float("inf")] * len(found) for name, found in batches.items()}
    for _ in range(ROUNDS):
        for number in range(len(batches["flat"])):
            for name, step in steps.items():
                spent = cpu_seconds(step, batches[name][number])
                least[name][number] = min(least[name][number], spent)
    return {name: sum(seconds) / len(seconds) for name, seconds in least.items()}


def mean_tokens(batches: Sequence[Batch]) -> float:
    """Tokens of a flat batch on average, without the budget's padding."""
    return sum(batch.tokens for batch in batches if isinstance(batch, FlatBatch)) / len(batches)


def main() -> None:
    torch.set_num_threads(1)
    print("training steps, hidden 256, 4 layers, vocabulary 30522, dropout 0.1, one thread, fp32:")
    for name, (batch_size, fill) in PHASES.items():
        length, masks = map(int, name.split("/"))
        layout = ShardLayout(max_seq_length=length, max_predictions_per_seq=masks)
        batches = find_batches(layout, batch_size, fill)
        tokens = mean_tokens(batches["flat"])
        real = tokens / (batch_size * length)
        for compiled in (False, True):
            seconds = step_seconds(batches, batch_size, compiled)
            how = "compiled" if compiled else "eager"
            print(
                f"  {name}, batch {batch_size}, fill {real:.2f}, {how}: flat {seconds['flat']:.2f} s a step, "
                f"{tokens / seconds['flat']:.0f} tokens a CPU second; rows {seconds['rows']:.2f} s; "
                f"flat is {seconds['rows'] / seconds['flat']:.2f} times as fast",
                flush=True,
            )


if __name__ == "__main__":
    main()
