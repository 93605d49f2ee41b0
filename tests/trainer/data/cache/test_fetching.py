"""Loaders that read remote files through a cache: the same batches, and files that are there in time."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.slow_store import SlowStore, count_reads, register_slow_store
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import ShardError
from tests.support.cached_files import make_shards
from tests.support.padded_examples import PaddedForm
from trainer.config.sections.data import DataSection, LoadingSection
from trainer.data.batches import FlatBatch
from trainer.data.cache import fetching
from trainer.data.cache.fetching import Fetcher
from trainer.data.cache.forecast import Margins, OrderForecast
from trainer.data.cache.shard_cache import ShardCache
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.load_packing import make_rows
from trainer.data.loader import Loader
from trainer.data.opening import add_cache
from trainer.data.order import Order
from trainer.remote import retries

FILES = 12


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch) -> Iterator[type[SlowStore]]:
    """A store that is not slow, and logs what is read to ``log``."""
    register_slow_store()
    monkeypatch.setattr(SlowStore, "log", tmp_path / "log")
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.001)
    (tmp_path / "log").touch()
    yield SlowStore
    SlowStore.every = SlowStore.requests = 0


@pytest.fixture(scope="module")
def many(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus in 12 shards."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("many")
    documents = [one for path in corpus for one in path.read_text().split("\n\n") if one.strip()]
    parts = []
    for number in range(FILES):
        parts.append(place / f"part-{number:05}")
        parts[-1].write_text("\n\n".join(documents[number::FILES]) + "\n\n")
    sizes = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=2")
    made = (f"--output={place / 'set'}", f"--vocab={small_vocabulary_file}", "--workers=1")
    assert main(["create", *map(str, parts), *made, *sizes]) == 0
    return place / "set"


def open_cached(paths: str, root: Path, gigabytes: float | None = None) -> OpenedDataset:
    data = open_weighted(paths)
    return add_cache(DataSection(cache_dir=str(root), cache_size=gigabytes), data)


def reads_of_shards(log: Path) -> Counter[str]:
    return Counter({name: count for name, count in count_reads(log)[0].items() if name.startswith("part-")})


def load(rows: Rows, updates: int, **settings: Any) -> list[bytes]:
    """The bytes of some updates of one worker."""
    loader = Loader(rows, form=make_form(rows, batch_size=8), batch_size=8, seed=3, **settings)
    found = []
    for update in islice(loader, updates):
        for batch in update.batches:
            assert isinstance(batch, FlatBatch)
            found += [value.numpy().tobytes() for value in (batch.input_ids, batch.masked_lm_ids)]
    loader.close()
    return found


def rows_of(kind: str, data: OpenedDataset) -> Rows:
    if kind == "packed":
        return make_rows(LoadingSection(pack_on_load=True, pack_window=64), Rows(data))
    if kind == "bins":
        return make_rows(LoadingSection(bins=2), Rows(data))
    return Rows(data)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("whole", {"open_files": 3}),
        ("streams", {"open_files": 12, "chunk_rows": 16}),
        ("packed", {"open_files": 3}),
        ("bins", {"open_files": 3}),
    ],
    ids=["whole files", "streams", "packed while loading", "bins"],
)
def test_batches_are_those_without_a_cache_and_each_file_comes_once(many, tmp_path, kind, settings):
    plain, data = open_weighted(str(many)), open_cached(f"slow://{many}", tmp_path / "cache")
    updates = 2 * plain.examples // 8
    assert load(rows_of(kind, data), updates, **settings) == load(rows_of(kind, plain), updates, **settings)
    reads = reads_of_shards(tmp_path / "log")
    assert set(reads.values()) == {1}
    assert len(reads) == 2 * FILES  # with the lengths of their examples


def test_batches_of_a_mixture_are_those_without_a_cache(many, longer_or_other, tmp_path):
    paths = f"{many}*0.7+{longer_or_other}*0.3"
    plain = open_weighted(paths)
    data = open_cached("+".join(f"slow://{one}" for one in paths.split("+")), tmp_path / "cache")
    settings: dict[str, int] = {"open_files": 2}
    updates = 2 * plain.examples // 8
    assert load(Rows(data), updates, **settings) == load(Rows(plain), updates, **settings)
    assert set(reads_of_shards(tmp_path / "log").values()) <= {1, 2}  # both sources have a part-00000


@pytest.fixture(scope="module")
def longer_or_other(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory) -> Path:
    """Other examples of the sample corpus, of the same sizes."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("other")
    sizes = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1", "--random-seed=5")
    made = (f"--output={place / 'set'}", f"--vocab={small_vocabulary_file}", "--workers=1")
    assert main(["create", *map(str, corpus), *made, *sizes]) == 0
    return place / "set"


@pytest.mark.parametrize("share", [1, 0.5])
def test_the_workers_of_a_machine_share_the_files_also_in_a_smaller_cache(many, tmp_path, share):
    plain = open_weighted(str(many))
    size = sum((shard.bytes or 0) + 2 * shard.examples for shard in plain.shards)
    opened = [open_cached(f"slow://{many}", tmp_path / "cache", share * size / 1e9) for _ in range(2)]
    loaders = [
        Loader(
            Rows(opened[rank]),
            form=PaddedForm(),
            batch_size=4,
            workers=2,
            rank=rank,
            machine=(0, 1),
            open_files=2,
            seed=3,
        )
        for rank in (0, 1)
    ]
    alone = [
        Loader(Rows(plain), form=PaddedForm(), batch_size=4, workers=2, rank=rank, open_files=2, seed=3)
        for rank in (0, 1)
    ]
    for _ in range(2 * plain.examples // 8):
        for one, other in zip(loaders, alone, strict=True):
            (mine,), (wanted,) = next(one).batches, next(other).batches
            assert mine.input_ids.equal(wanted.input_ids)
    for loader in (*loaders, *alone):
        loader.close()
    cache = opened[0].copies
    assert isinstance(cache, ShardCache)
    assert cache.folder.count_bytes() <= size * share
    reads = reads_of_shards(tmp_path / "log")
    assert len(reads) == 2 * FILES  # with the lengths of their examples
    # Without a cache, two workers would read each file twice in each of the two epochs.
    assert max(reads.values()) == 1 if share == 1 else reads.total() < 8 * FILES


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def fetcher_of(
    tmp_path: Path, count: int, limit: int, *, place: int = 0, until: int = 10**9
) -> tuple[Fetcher, ShardCache, list[Shard], OrderForecast]:
    """A fetcher of files of 100 bytes with 10 examples each, which are read one at a time."""
    shards = make_shards(tmp_path / "store", [100] * count)
    cache = ShardCache(str(tmp_path / "cache"), limit, shards)
    order = Order([(shard.name, 10) for shard in shards], seed=1, open_files=1)
    forecast = OrderForecast(order, Margins(before=10, after=0))
    return Fetcher(cache, forecast, place=place, until=until), cache, shards, forecast


def there(cache: ShardCache) -> set[int]:
    """The numbers of the files in the cache."""
    found = cache.folder.list_names()
    return {number for number, file in enumerate(cache.files) if cache.names[file.path] in found}


def test_files_come_in_the_order_of_their_needs_until_the_cache_is_full(tmp_path):
    fetcher, cache, shards, forecast = fetcher_of(tmp_path, 8, 300)
    by_need = np.argsort(forecast.find_next(0)).tolist()
    wait_for(lambda: there(cache) == set(by_need[:3]))
    time.sleep(0.2)
    assert there(cache) == set(by_need[:3])
    # A file whose place was passed makes room for the next one.
    fetcher.reach(15)
    wait_for(lambda: len(there(cache)) == 3 and there(cache) >= set(by_need[2:4]))
    fetcher.reach(35)
    wait_for(lambda: there(cache) == set(by_need[4:7]))
    fetcher.close()
    assert dict(count_reads(tmp_path / "log")[0])[shards[by_need[0]].name] == 1


def test_nothing_is_fetched_that_is_needed_only_after_the_end_of_the_run(tmp_path):
    fetcher, cache, _, forecast = fetcher_of(tmp_path, 8, 800, until=40)
    by_need = np.argsort(forecast.find_next(0)).tolist()
    wait_for(lambda: there(cache) == set(by_need[:4]))
    time.sleep(0.2)
    assert there(cache) == set(by_need[:4])
    fetcher.close()


def test_files_that_are_needed_soon_are_kept_from_others_until_the_run_ends(tmp_path):
    fetcher, cache, shards, forecast = fetcher_of(tmp_path, 8, 300)
    by_need = np.argsort(forecast.find_next(0)).tolist()
    wait_for(lambda: len(there(cache)) == 3)
    wait_for(lambda: len(fetcher._kept) == 2)  # the places 0 and 10 are near
    more = make_shards(tmp_path / "more", [200, 300])
    other = ShardCache(str(tmp_path / "cache"), 300, more)
    assert other.hold(more[1].file) is None
    assert len(there(cache)) == 3
    fetcher.close()
    descriptor = other.hold(more[1].file)
    assert descriptor is not None
    os.close(descriptor)
    assert by_need
    assert shards


def test_files_of_evaluations_stay_while_the_training_fetches_ahead_in_a_small_cache(tmp_path):
    fetcher, cache, _, forecast = fetcher_of(tmp_path, 8, 500)
    by_need = np.argsort(forecast.find_next(0)).tolist()
    wait_for(lambda: there(cache) == set(by_need[:5]))
    held_out = make_shards(tmp_path / "held-out", [50, 51, 52])
    copies = ShardCache(str(tmp_path / "cache"), 500, held_out)
    with copies.keep_all():
        for place in (0, 15, 35, 55):
            fetcher.reach(place)
            # The training has its next files, and none is left to fetch.
            wait_for(lambda place=place: there(cache) >= set(by_need[(place + 5) // 10 :][:2]))
            time.sleep(0.1)
            for shard in held_out:
                with copies.open_copy(shard.file) as file:
                    assert file is not None
        assert copies.fetched_files == 3
        # What the training needs now has precedence.
        fetcher.close()
        descriptors = [cache.hold(file) for file in cache.files[:5]]
        assert there(copies) == set()
        for descriptor in descriptors:
            assert descriptor is not None
            os.close(descriptor)


def test_a_place_that_is_reached_while_the_run_ends_keeps_no_file(tmp_path):
    fetcher, cache, shards, forecast = fetcher_of(tmp_path, 8, 300)
    by_need = np.argsort(forecast.find_next(0)).tolist()
    wait_for(lambda: there(cache) == set(by_need[:3]))
    fetcher.close()
    fetcher.reach(0)
    descriptors = [cache.hold(shards[number].file) for number in by_need[5:]]
    assert there(cache) == set(by_need[5:])
    for descriptor in descriptors:
        assert descriptor is not None
        os.close(descriptor)


def test_a_file_that_another_worker_has_begun_to_fetch_does_not_make_the_threads_wait(tmp_path, monkeypatch):
    shards = make_shards(tmp_path / "store", [100] * 8)
    cache = ShardCache(str(tmp_path / "cache"), 800, shards)
    order = Order([(shard.name, 10) for shard in shards], seed=1, open_files=1)
    forecast = OrderForecast(order, Margins(before=10, after=0))
    first, *later = np.argsort(forecast.find_next(0)).tolist()
    with cache.folder.locked():
        begun = cache.folder.begin(cache.names[shards[first].path], 100, 800, lambda file: None)
    assert begun.descriptor is not None
    # Both threads have chosen the file before the other worker began.
    listed = [set[str](), set[str]()]
    list_names = cache.folder.list_names
    monkeypatch.setattr(cache.folder, "list_names", lambda: listed.pop() if listed else list_names())
    monkeypatch.setattr(fetching, "_SHORTEST_REST_SECONDS", 60.0)
    fetcher = Fetcher(cache, forecast, place=0, until=10**9)
    wait_for(lambda: there(cache) == set(later))
    fetcher.close()
    os.close(begun.descriptor)


def test_an_unknown_error_of_a_store_does_not_end_the_fetching_of_other_files(tmp_path, monkeypatch):
    download, failures = ShardCache._download, [RuntimeError("of a client"), RuntimeError("of a client")]

    def fail_twice(*given: Any) -> tuple[str, int]:
        if failures:
            raise failures.pop()
        return download(*given)

    monkeypatch.setattr(ShardCache, "_download", staticmethod(fail_twice))
    fetcher, cache, _, _ = fetcher_of(tmp_path, 8, 800)
    wait_for(lambda: len(there(cache)) == 6)
    fetcher.close()
    assert len(cache.folder.list_names()) == 7  # with in-use.lock: nothing is left of the others


def test_a_file_that_cannot_be_fetched_ahead_is_the_readers_error(many, tmp_path):
    import shutil

    place = tmp_path / "set"
    shutil.copytree(many, place)
    path = sorted(place.glob("part-*"))[3]
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    opened = open_cached(f"slow://{place}", tmp_path / "cache")
    with pytest.raises(ShardError, match=f"slow://{path}: found md5 [0-9a-f]{{32}}, expected"):
        load(Rows(opened), opened.examples // 8, open_files=3)
