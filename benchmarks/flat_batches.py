"""CPU time of training steps on flat batches and on padded rows, on one core.

The sequences of a flat batch follow each other without padding. The steps are the trainer's, in fp32 with
dropout, for both phases of BERT, with and without torch.compile. Flat batches and padded rows contain the
same generated examples, whose share of padding is that of real data. Both are measured alternately. The least
CPU time of each batch counts, because other work on the machine only adds to it.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import torch

from benchmarks.training import make_our_step, measure_cpu_seconds
from bertdata.records import ShardLayout
from trainer.data.batches import Batch, FlatBatch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.padded_rows import RowForm

PHASES = {"128/20": (32, 0.9), "512/80": (16, 0.5)}
"""For each layout (ids/masks of an example), the batch size and the share of positions that contain a token.
"""

BATCHES, ROUNDS = 2, 3
_DRAWN = 24


def find_batches(layout: ShardLayout, batch_size: int, fill: float) -> dict[str, list[Batch]]:
    """Return the same examples twice: as padded rows, and as flat batches.

    All flat batches have the same number of positions, the token budget. Positions that are left over are
    padding.

    layout: lengths of the examples.
    fill: share of positions of the padded rows that contain a token.
    """
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


def time_steps(batches: dict[str, list[Batch]], batch_size: int, compiled: bool) -> dict[str, float]:
    """Return the CPU seconds of a step on padded rows and on flat batches.

    compiled: True to compile the model with torch.compile.
    """
    steps = {name: make_our_step(batch_size, compiled=compiled) for name in batches}
    for name, step in steps.items():
        step(batches[name][0])
    least: dict[str, list[float]] = {name: [float("inf")] * len(found) for name, found in batches.items()}
    for _ in range(ROUNDS):
        for number in range(len(batches["flat"])):
            for name, step in steps.items():
                spent = measure_cpu_seconds(step, batches[name][number])
                least[name][number] = min(least[name][number], spent)
    return {name: sum(seconds) / len(seconds) for name, seconds in least.items()}


def compute_mean_tokens(batches: Sequence[Batch]) -> float:
    """Return the mean number of tokens of a flat batch, not counting padding.

    Padding fills every batch up to the same number of positions, the token budget.
    """
    return sum(batch.tokens for batch in batches if isinstance(batch, FlatBatch)) / len(batches)


def main() -> None:
    """Print the times for both phases."""
    torch.set_num_threads(1)
    print("training steps, hidden 256, 4 layers, vocabulary 30522, dropout 0.1, one thread, fp32:")
    for name, (batch_size, fill) in PHASES.items():
        length, masks = map(int, name.split("/"))
        layout = ShardLayout(max_seq_length=length, max_predictions_per_seq=masks)
        batches = find_batches(layout, batch_size, fill)
        tokens = compute_mean_tokens(batches["flat"])
        real = tokens / (batch_size * length)
        for compiled in (False, True):
            seconds = time_steps(batches, batch_size, compiled)
            how = "compiled" if compiled else "eager"
            print(
                f"  {name}, batch {batch_size}, fill {real:.2f}, {how}: flat {seconds['flat']:.2f} s a step, "
                f"{tokens / seconds['flat']:.0f} tokens a CPU second; rows {seconds['rows']:.2f} s; "
                f"flat is {seconds['rows'] / seconds['flat']:.2f} times as fast",
                flush=True,
            )


if __name__ == "__main__":
    main()
