"""Speed of ModernBERT's loader in one thread: this project's version, and the original program's steps.

    python -m benchmarks.modernbert_loader

The original's steps are rewritten here. It takes sequences one by one in the order of NumPy's permutation,
cuts them, keeps them in a deque, and puts them into rows one by one. NumPy expressions then draw the masks.
If numba is installed, it compiles the search for a row, as in the original. If mosaicml-streaming is
installed, it reads the sequences from MDS shards, as in the original. A second figure is for sequences in
memory, without the cost of reading.

This project's loader gets decoded sequences. The figure in brackets includes opening and decoding the MDS
shards. Each loader makes one epoch, and it is checked that both make equal batches. The figures are tokens
per CPU second.
"""

import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpus, measure
from bertdata.examples.columns import Array
from bertdata.loaders.modernbert.loader import ModernBertLoader
from bertdata.loaders.modernbert.settings import ModernBertSettings
from bertdata.loaders.sequences import StoredSequences
from bertdata.steps.open_dataset import open_dataset

PART_BYTES = 4_000_000
SEED, PROB, BUFFERED = 17, 0.3, 5
SHAPES = ((128, 64, 8), (512, 64, 8), (1024, 96, 12))
"""The cases to measure: number of positions of a row, batch size, and micro-batch size."""

Search = Callable[[Array, int], int]


def find_best_fit(room: Array, length: int) -> int:
    """Return the index of the row in which the sequence leaves the fewest positions free, or -1 if none fits.

    room: number of free positions in each row.
    length: number of tokens of the sequence.
    """
    found, least = -1, 1 << 62
    for row in range(len(room)):
        if length <= room[row] < least:
            found, least = row, room[row]
    return found


class MdsSequences:
    """Sequences that mosaicml-streaming writes to MDS shards and then reads one by one."""

    def __init__(self, examples: list[Array], place: str) -> None:
        import streaming

        with streaming.MDSWriter(out=place, columns={"input_ids": "ndarray:uint16"}) as writer:
            for example in examples:
                writer.write({"input_ids": example.astype(np.uint16)})
        self._samples = streaming.LocalDataset(place)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, number: int) -> Array:
        found: Array = self._samples[number]["input_ids"]
        return found


class OriginalSteps:
    """Packing and masking of an epoch, in the same steps as in the original program."""

    def __init__(self, examples: Any, shape: tuple[int, int, int], ids: tuple[int, int]) -> None:
        self.examples, (self.length, self.batch, micro) = examples, shape
        self.mask_id, self.padding_id = ids
        self.rows, self.width = self.batch // micro, micro * self.length
        self.buffer: deque[Array] = deque()
        self.buffer_size = BUFFERED * self.batch
        self.random = np.random.default_rng(SEED)

    def source(self) -> Iterator[list[Array]]:
        """Yield batches of sequences, in the order of the epoch."""
        order = np.random.Generator(np.random.PCG64DXSM(SEED)).permutation(len(self.examples)).tolist()
        for start in range(0, len(order), self.batch):
            yield [self.examples[number][: self.length] for number in order[start : start + self.batch]]

    def fill(self, source: Iterator[list[Array]], most: int) -> int:
        """Move batches from ``source`` to the buffer until it is full, and return the number of sequences
        moved.

        most: largest number of sequences to move.
        """
        added = 0
        while self.buffer_size - len(self.buffer) > self.batch and added + self.batch <= most:
            found = next(source, None)
            if found is None:
                break
            self.buffer.extend(found)
            added += len(found)
        return added

    def batches(self, search: Search) -> Iterator[dict[str, Any]]:
        """Yield the packed and masked batches of the epoch.

        search: function that finds the row for a sequence.
        """
        source = self.source()
        while (packed := self.pack(source, search)) is not None:
            cells, ends = packed
            masked, labels = self.mask(cells)
            spans = [np.array(row, np.int32) for row in ends]
            yield {
                "input_ids": masked,
                "labels": labels,
                "cu_seqlens": spans,
                "max_seqlen": [int(np.max(row[1:] - row[:-1])) for row in spans],
                "attention_mask": np.where(cells == self.padding_id, 0, 1),
            }

    def pack(self, source: Iterator[list[Array]], search: Search) -> tuple[Array, list[list[int]]] | None:
        """Put sequences into the rows of a batch until no sequence is left that fits.

        Returns the ids of all rows, and for each row where its sequences begin and end. Returns None at the
        end of the epoch.
        """
        cells = np.full((self.rows, self.width), self.padding_id, np.int64)
        room, ends = np.full(self.rows, self.width), [[0] for _ in range(self.rows)]
        skipped: list[Array] = []
        while self.buffer or self.fill(source, self.buffer_size - len(skipped)):
            one = self.buffer.popleft()
            row = search(room, len(one))
            if row < 0:
                skipped.append(one)
                continue
            start = self.width - room[row]
            cells[row, start : start + len(one)] = one
            room[row] -= len(one)
            ends[row].append(int(start) + len(one))
        self.buffer.extendleft(skipped)
        if any(len(row) == 1 for row in ends):
            return None
        return cells, [row + [self.width] * (row[-1] < self.width) for row in ends]

    def mask(self, cells: Array) -> tuple[Array, Array]:
        """Draw masks in the rows.

        Returns the masked ids and the labels, which are -100 where nothing is masked.
        """
        draws = self.random.random(cells.shape)
        masked = draws < 0.8 * PROB
        replaced = (draws >= 0.8 * PROB) & (draws < 0.9 * PROB)
        kept = (draws >= 0.9 * PROB) & (draws < PROB)
        labels = np.where(cells == self.padding_id, -100, cells)
        labels = np.where(masked | replaced | kept, labels, -100)
        ids = np.where(masked, self.mask_id, cells)
        words = self.random.integers(0, np.max(ids) + 1, size=ids.shape)
        return np.where(replaced, words, ids), labels


def measure_rate(make: Callable[[], Iterator[dict[str, Any]]]) -> float:
    """Return the speed of a loader in million tokens per CPU second.

    make: function that returns the loader's batches.
    """
    tokens = sum(int(batch["attention_mask"].sum()) for batch in make())
    return tokens / measure.measure_best_cpu(lambda: deque(make(), maxlen=0)) / 1e6


def open_stored_sequences(directory: str) -> StoredSequences:
    """Open the dataset in this directory as a collection of sequences."""
    return StoredSequences(open_dataset(directory).opened)


def make_our_loader(
    sequences: StoredSequences, shape: tuple[int, int, int], ids: tuple[int, int]
) -> ModernBertLoader:
    """Return this project's loader for the sequences.

    shape: number of positions of a row, batch size, and micro-batch size.
    ids: ids of the mask token and of the padding token.
    """
    length, batch, micro = shape
    settings = ModernBertSettings(
        max_seq_len=length,
        batch_size=batch,
        micro_batch_size=micro,
        order_seed=SEED,
        mask_seed=SEED,
        mask_prob=PROB,
    )
    return ModernBertLoader(sequences, settings, mask_id=ids[0], padding_id=ids[1], epoch=0)


def check_equal(found: Iterator[dict[str, Any]], wanted: Iterator[dict[str, Any]]) -> None:
    """Exit with a message if the two loaders make different batches."""
    for one, other in zip(found, wanted, strict=True):
        for name, values in other.items():
            for row, expected in zip(one[name], values, strict=True):
                if not np.array_equal(row, expected):
                    sys.exit(f"the loaders differ in {name}")


def main() -> None:
    """Print all speeds."""
    search, compiled = find_best_fit, "plain Python"
    if find_spec("numba"):
        import numba

        search, compiled = numba.njit(find_best_fit), f"numba {numba.__version__}"
    with tempfile.TemporaryDirectory() as place:
        part, vocabulary = Path(place, "part"), corpus.find_vocabulary()
        part.write_bytes(corpus.make_long_text(PART_BYTES))
        words = vocabulary.read_text(encoding="utf-8").split("\n")
        ids = words.index("[MASK]"), words.index("[PAD]")
        print(
            f"ModernBERT's loader, tokens a second and core; theirs with NumPy {np.__version__}, {compiled}:"
        )
        for shape in SHAPES:
            output = str(Path(place, f"blocks-{shape[0]}"))
            kind = ["--objective", "mlm", "--no-masks", "--blocks", "eos", "--max-seq-length", str(shape[0])]
            kind = kind if shape[0] < 512 else [word for word in kind if word not in ("--blocks", "eos")]
            create = [sys.executable, "-m", "bertdata", "create", str(part), "--output", output]
            measure.measure_command(*create, "--vocab", str(vocabulary), "--format", "mds", *kind)
            examples = [np.array(one.ids, np.int64) for one in open_dataset(output)]
            sequences = open_stored_sequences(output)
            check_equal(
                make_our_loader(sequences, shape, ids), OriginalSteps(examples, shape, ids).batches(search)
            )
            peers = {"from memory": examples}
            if find_spec("streaming"):
                peers["from MDS"] = MdsSequences(examples, f"{output}-mds")  # type: ignore[assignment]
            rate = measure_rate(lambda given=sequences, of=shape: make_our_loader(given, of, ids))
            whole = measure_rate(
                lambda path=output, of=shape: make_our_loader(open_stored_sequences(path), of, ids)
            )
            print(
                f"  {len(examples)} sequences of up to {shape[0]} ids, batches of {shape[1]} in "
                f"{shape[1] // shape[2]} rows: {rate:.1f} million ({whole:.1f})"
            )
            for name, given in peers.items():
                peer = measure_rate(
                    lambda given=given, of=shape: OriginalSteps(given, of, ids).batches(search)
                )
                ratios = f"ours {rate / peer:.1f} times ({whole / peer:.1f}; wanted: 5)"
                print(f"    theirs {name}: {peer:.1f} million; {ratios}")


if __name__ == "__main__":
    main()
