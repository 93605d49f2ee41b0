"""Progress of a run whose workers are other threads or processes: what they note of finished shards."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from bertdata.cli.common.progress import Progress, ShardRate
from bertdata.dataset.writer import Dataset
from bertdata.errors import BertDataError

LOOK_EVERY_SECONDS = 0.5


class Watcher:
    """Finds out which shards of the datasets are finished."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._datasets = datasets
        self._seen: list[set[str]] = [set() for _ in datasets]

    def look(self) -> list[int]:
        """The tokens of each shard noted since the last look."""
        tokens = []
        for dataset, seen in zip(self._datasets, self._seen, strict=True):
            for name in dataset.noted_shards():
                if name not in seen and (entries := dataset.read_entry(name)) is not None:
                    seen.add(name)
                    tokens.append(entries[1].tokens)
        return tokens

    def last_look(self) -> list[int]:
        """The same when the datasets are finished, and the notes gone: of the manifests' shards."""
        tokens = []
        for dataset, seen in zip(self._datasets, self._seen, strict=True):
            manifest = dataset.found_manifest()
            tokens += (
                [shard.tokens for shard in manifest.shards if shard.name not in seen] if manifest else []
            )
        return tokens


@contextmanager
def watching(datasets: Sequence[Dataset], shards: int) -> Iterator[None]:
    """On a terminal, show shards done, tokens per second and the time left while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    watcher, rate, end = Watcher(datasets), ShardRate(shards), threading.Event()
    with Progress("creating shards", shards, unit="shards") as progress:

        def show(tokens: list[int], made: bool = True) -> None:
            rate.count(len(tokens), sum(tokens) if made else 0)
            progress.advance(len(tokens), "", rate.text())

        def watch() -> None:
            while not end.wait(LOOK_EVERY_SECONDS):
                with suppress(BertDataError, OSError):  # a bar is no reason for a run to fail
                    show(watcher.look())

        show(watcher.look(), made=False)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
        show(watcher.last_look())
        progress.complete()
