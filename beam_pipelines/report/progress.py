"""Progress bar of a local run, which counts the finished shards in the datasets' directories.

The workers are other threads or processes, and Beam does not report how far they are.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from bertdata.cli.common.progress import Progress, ShardRate
from bertdata.dataset.writer import Dataset
from bertdata.errors import BertDataError

POLL_SECONDS = 0.5


class FinishedShards:
    """The shards that workers have finished so far, found by looking into the datasets' directories."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._datasets = datasets
        self._seen: list[set[str]] = [set() for _ in datasets]

    def count_new_tokens(self) -> list[int]:
        """Return the number of tokens of each shard that was finished since the last call of this method."""
        tokens = []
        for dataset, seen in zip(self._datasets, self._seen, strict=True):
            for name in dataset.list_noted_shards():
                if name not in seen and (entries := dataset.read_entry(name)) is not None:
                    seen.add(name)
                    tokens.append(entries[1].tokens)
        return tokens

    def count_remaining_tokens(self) -> list[int]:
        """Return the number of tokens of each shard that ``count_new_tokens`` has not returned yet.

        The numbers are read from the manifests, because a finished dataset has no notes about single shards
        any more.
        """
        tokens = []
        for dataset, seen in zip(self._datasets, self._seen, strict=True):
            manifest = dataset.read_manifest()
            tokens += (
                [shard.tokens for shard in manifest.shards if shard.name not in seen] if manifest else []
            )
        return tokens


@contextmanager
def show_progress(datasets: Sequence[Dataset], shards: int) -> Iterator[None]:
    """Return a context manager that shows a progress bar while its block runs, if standard error is a
    terminal.

    The bar shows finished shards, tokens per second and remaining time.

    datasets: the datasets whose directories are looked into.
    shards: number of shards of all datasets together.
    """
    if not sys.stderr.isatty():
        yield
        return
    finished, rate, end = FinishedShards(datasets), ShardRate(shards), threading.Event()
    with Progress("creating shards", shards, unit="shards") as progress:

        def show(tokens: list[int], made: bool = True) -> None:
            """Advance the bar by the shards with these numbers of tokens.

            made: True for shards of this run, whose tokens count for the speed. False for shards of an
                earlier run.
            """
            rate.count(len(tokens), sum(tokens) if made else 0)
            progress.advance(len(tokens), "", rate.text())

        def poll() -> None:
            """Look for new shards until the run has ended."""
            while not end.wait(POLL_SECONDS):
                with suppress(BertDataError, OSError):  # An error while counting shards must not end the run.
                    show(finished.count_new_tokens())

        show(finished.count_new_tokens(), made=False)
        thread = threading.Thread(target=poll, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
        show(finished.count_remaining_tokens())
        progress.complete()
