"""The cache of remote files: each is fetched once, whole or not at all, and the latest needed is dropped."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.slow_store import SlowStore, count_reads, register_slow_store
from bertdata.dataset.reader import Shard
from bertdata.errors import MissingInputError, SettingsError, ShardError, StorageError
from tests.support.cached_files import CacheProcess, make_shards
from tests.support.needs import choose_dropped, count_least_fetches
from tests.support.paths import ROOT
from trainer.data.cache import folder as folders
from trainer.data.cache import shard_cache
from trainer.data.cache.folder import CacheFolder, DiskFull
from trainer.data.cache.forecast import NEVER
from trainer.data.cache.shard_cache import Outlook, ShardCache, format_bytes
from trainer.remote import retries

LARGE = 10**9


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch) -> Iterator[type[SlowStore]]:
    """A store that is not slow, and logs what is read to ``log``."""
    register_slow_store()
    monkeypatch.setattr(SlowStore, "log", tmp_path / "log")
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.001)
    (tmp_path / "log").touch()
    yield SlowStore
    SlowStore.every = SlowStore.requests = 0


def read(cache: ShardCache, shard: Shard) -> bytes | None:
    with cache.open_copy(shard.file) as file:
        return None if file is None else file.read()


def contents(shard: Shard) -> bytes:
    return Path(shard.path.removeprefix("slow://")).read_bytes()


def names(cache: ShardCache) -> list[str]:
    """The files in the dataset's directory."""
    return sorted(cache.folder.list_names())


def fetched(tmp_path: Path) -> dict[str, int]:
    return dict(count_reads(tmp_path / "log")[0])


def test_a_file_is_fetched_once_and_read_from_the_disk(tmp_path):
    shards = make_shards(tmp_path / "store", [3000, 0, 17])
    cache = ShardCache(str(tmp_path / "cache"), LARGE, shards)
    for _ in range(3):
        assert [read(cache, shard) for shard in shards] == list(map(contents, shards))
    # another worker, and another run
    assert read(ShardCache(str(tmp_path / "cache"), LARGE, shards), shards[0]) == contents(shards[0])
    assert fetched(tmp_path) == {"part-00000": 1, "part-00002": 1}
    assert (cache.fetched_files, cache.fetched_bytes) == (3, 3017)
    assert names(cache) == sorted(f"{shard.name}.{shard.md5}" for shard in shards)


def test_a_local_file_is_never_copied(tmp_path):
    remote = make_shards(tmp_path / "store", [100, 100])
    local = replace(remote[1], path=remote[1].path.removeprefix("slow://"))
    cache = ShardCache(str(tmp_path / "cache"), LARGE, [remote[0], local])
    assert read(cache, local) is None
    assert read(cache, remote[0]) == contents(remote[0])
    assert names(cache) == [f"part-00000.{remote[0].md5}"]


def test_a_wrong_md5_is_fetched_again_and_is_then_one_error_with_file_and_md5s(tmp_path, monkeypatch):
    (shard,) = make_shards(tmp_path / "store", [500])
    cache = ShardCache(str(tmp_path / "cache"), LARGE, [shard])
    path = Path(shard.path.removeprefix("slow://"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"?")
    with pytest.raises(ShardError, match=rf"{path}: found md5 [0-9a-f]{{32}}, expected {shard.md5}"):
        read(cache, shard)
    assert fetched(tmp_path) == {"part-00000": 2}
    assert names(cache) == []
    # The second attempt brings the right bytes.
    download = ShardCache._download
    attempts = []

    def mend(*given: object) -> tuple[str, int]:
        attempts.append(given)
        if len(attempts) == 2:
            path.write_bytes(whole)
        return download(*given)

    monkeypatch.setattr(ShardCache, "_download", staticmethod(mend))
    assert read(cache, shard) == whole
    assert len(attempts) == 2


def test_a_file_shorter_or_longer_than_listed_is_wrong(tmp_path):
    for size in (400, 600):
        (shard,) = make_shards(tmp_path / str(size), [500])
        path = Path(shard.path.removeprefix("slow://"))
        path.write_bytes(bytes(size))
        with pytest.raises(ShardError, match="found md5"):
            read(ShardCache(str(tmp_path / "cache"), LARGE, [shard]), shard)


def test_a_store_that_fails_one_request_in_five_gives_every_file(tmp_path, store):
    shards = make_shards(tmp_path / "store", [100 + number for number in range(20)])
    cache = ShardCache(str(tmp_path / "cache"), LARGE, shards)
    store.every = 5
    assert [read(cache, shard) for shard in shards] == list(map(contents, shards))
    assert store.requests > 20


def test_a_store_that_does_not_answer_or_has_no_file_is_an_error_and_leaves_nothing(tmp_path, store):
    shards = make_shards(tmp_path / "store", [100, 100])
    cache = ShardCache(str(tmp_path / "cache"), LARGE, shards)
    store.every = 1
    with pytest.raises(StorageError, match="part-00000: connection reset by peer"):
        read(cache, shards[0])
    assert store.requests == retries.ATTEMPTS
    store.every = 0
    Path(shards[1].path.removeprefix("slow://")).unlink()
    with pytest.raises(MissingInputError, match="part-00001: no such file"):
        read(cache, shards[1])
    assert names(cache) == []
    assert read(cache, shards[0]) == contents(shards[0])


def test_a_copy_that_changed_since_an_earlier_run_is_fetched_again(tmp_path):
    shards = make_shards(tmp_path / "store", [300, 300])
    root = str(tmp_path / "cache")
    first = ShardCache(root, LARGE, shards)
    assert [read(first, shard) for shard in shards] == list(map(contents, shards))
    for shard, damaged in zip(shards, (bytes(300), bytes(200)), strict=True):
        Path(first.folder.directory, first.names[shard.path]).write_bytes(damaged)
    time.sleep(0.01)
    later = ShardCache(root, LARGE, shards)
    time.sleep(0.05)  # a run opens its data some time before it reads them
    assert [read(later, shard) for shard in shards] == list(map(contents, shards))
    assert fetched(tmp_path) == {"part-00000": 2, "part-00001": 2}


def test_a_copy_that_the_disk_does_not_give_back_is_fetched_again(tmp_path, monkeypatch):
    (shard,) = make_shards(tmp_path / "store", [300])
    root = str(tmp_path / "cache")
    assert read(ShardCache(root, LARGE, [shard]), shard) == contents(shard)
    time.sleep(0.01)
    later = ShardCache(root, LARGE, [shard])

    def fail(*given: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(shard_cache.os, "pread", fail)
    assert read(later, shard) == contents(shard)
    assert fetched(tmp_path) == {"part-00000": 2}


def test_files_without_a_manifest_are_told_apart_by_their_version(tmp_path):
    (shard,) = make_shards(tmp_path / "store", [300])
    shard = replace(shard, md5=None)
    path = Path(shard.path.removeprefix("slow://"))
    root = str(tmp_path / "cache")
    assert read(ShardCache(root, LARGE, [shard]), shard) == contents(shard)
    os.utime(path, ns=(0, 10**18))
    path.write_bytes(bytes(300))
    assert read(ShardCache(root, LARGE, [shard]), shard) == bytes(300)


def test_what_the_cache_did_not_write_stays(tmp_path):
    shards = make_shards(tmp_path / "store", [100] * 4)
    root = tmp_path / "cache"
    cache = ShardCache(str(root), 200, shards)
    kept = [root / "notes.txt", Path(cache.folder.directory, "model.bin"), root / "bertdata-cache-mine" / "x"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(1000))
    for shard in shards:
        assert read(cache, shard) == contents(shard)
    assert all(path.read_bytes() == bytes(1000) for path in kept)
    assert cache.folder.list_foreign() == [str(kept[1])]
    assert cache.folder.count_bytes() == 200  # of the four files two are there, and the others do not count


# What is dropped


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    wanted=st.integers(1, 9),
    limit=st.integers(5, 40),
    data=st.data(),
)
def test_the_dropped_files_are_those_of_the_twin(tmp_path_factory, sizes, wanted, limit, data):
    """Files that are needed latest are dropped, but none that is needed before the fetched one, or in use."""
    place = tmp_path_factory.mktemp("twin")
    shards = make_shards(place / "store", [*sizes, wanted])
    needs = data.draw(st.permutations(range(len(shards))))
    held = data.draw(st.sets(st.integers(0, len(sizes) - 1)))
    cache = ShardCache(str(place / "cache"), LARGE, shards)
    descriptors = [cache.hold(shard.file) for shard in shards[:-1]]
    for number, descriptor in enumerate(descriptors):
        assert descriptor is not None
        if number not in held:
            os.close(descriptor)
    cache.limit = limit
    cache.expect(Outlook(np.array(needs), np.zeros(len(shards), bool)))
    new = len(sizes)
    kept = {number for number in range(new) if needs[number] < needs[new]} | held
    by_number = dict(enumerate(sizes))
    dropped = choose_dropped(by_number, dict(enumerate(needs)), sum(sizes) + wanted - limit, kept)
    descriptor = cache.hold(shards[-1].file, before=needs[new])
    assert (descriptor is None) == (dropped is None)
    there = {number for number, shard in enumerate(shards) if cache.names[shard.path] in names(cache)}
    assert there == {*range(new), new} - {*(dropped or ())} - ({new} if dropped is None else set())
    for one in [descriptor, *(descriptors[number] for number in held)]:
        if one is not None:
            os.close(one)
    shutil.rmtree(place)


@settings(max_examples=25)
@given(wanted=st.lists(st.integers(0, 4), min_size=1, max_size=11), room=st.integers(1, 4))
def test_no_other_choice_would_fetch_less(tmp_path_factory, wanted, room):
    place = tmp_path_factory.mktemp("least")
    shards = make_shards(place / "store", [7] * 5)
    cache = ShardCache(str(place / "cache"), 7 * room, shards)
    for at, number in enumerate(wanted):
        needs = np.array(
            [next((i for i in range(at, len(wanted)) if wanted[i] == f), NEVER) for f in range(5)]
        )
        cache.expect(Outlook(needs, needs == at))
        assert read(cache, shards[number]) == contents(shards[number])
    assert cache.fetched_files == count_least_fetches(wanted, room)
    shutil.rmtree(place)


def test_files_of_unused_datasets_are_dropped_first_and_those_of_other_runs_last(tmp_path):
    root = str(tmp_path / "cache")
    of_each = [make_shards(tmp_path / name, [100 + number]) for number, name in enumerate("abc")]
    unused, other, own = (ShardCache(root, LARGE, shards) for shards in of_each)
    for cache, (shard,) in zip((unused, other, own), of_each, strict=True):
        assert read(cache, shard) is not None
    in_use = other.folder.use()
    more = make_shards(tmp_path / "more", [100, 101, 102])
    mine = ShardCache(root, 310, [*of_each[2], *more])
    assert mine.folder.directory != own.folder.directory  # it is another choice of files
    mine.expect(Outlook(np.array([9, 1, 2, 3]), np.zeros(4, bool)))
    assert read(mine, more[0]) == contents(more[0])
    left = {cache.folder.directory: len(names(cache)) for cache in (unused, other, own)}
    assert sum(left.values()) == 3  # with in-use.lock, the file that was used longest ago is gone
    assert names(unused) == []
    assert read(mine, more[1]) == contents(more[1])
    assert names(own) == []
    # ahead of the need, a file of the other run is never dropped
    assert mine.hold(more[2].file, before=3) is None
    os.close(in_use)
    assert read(mine, more[2]) == contents(more[2])
    assert len(names(other)) == 1


def test_files_that_are_all_read_again_and_again_do_not_drop_each_other(tmp_path, capsys):
    shards = make_shards(tmp_path / "store", [100, 100, 100])
    cache = ShardCache(str(tmp_path / "cache"), 250, shards)
    with cache.keep_all():
        for _ in range(3):
            assert [read(cache, shard) for shard in shards] == [*map(contents, shards[:2]), None]
        assert cache.fetched_files == 2
        assert "give more --cache-size" in capsys.readouterr().err
    assert read(cache, shards[2]) == contents(shards[2])


def test_a_full_cache_in_use_is_read_past_with_a_warning(tmp_path, capsys):
    shards = make_shards(tmp_path / "store", [100, 100])
    cache = ShardCache(str(tmp_path / "cache"), 150, shards)
    descriptor = cache.hold(shards[0].file)
    assert descriptor is not None
    for _ in range(2):
        assert read(cache, shards[1]) is None
    said = capsys.readouterr().err
    assert said.count("warning") == 1
    assert f"{tmp_path / 'cache'}: the cache of 150 bytes has no room beside the files in use; " in said
    os.close(descriptor)
    assert read(cache, shards[1]) == contents(shards[1])


def test_on_a_full_disk_the_cache_goes_on_with_what_it_has(tmp_path, capsys, monkeypatch):
    shards = make_shards(tmp_path / "store", [100] * 4)
    cache = ShardCache(str(tmp_path / "cache"), LARGE, shards)
    allocate = folders._allocate
    free = [250]

    def fill(descriptor: int, size: int) -> None:
        if sum(os.stat(Path(cache.folder.directory, name)).st_size for name in names(cache)) + size > free[0]:
            raise DiskFull
        allocate(descriptor, size)

    monkeypatch.setattr(folders, "_allocate", fill)
    for _ in range(2):
        for shard in shards:
            assert read(cache, shard) == contents(shard)
    assert cache.folder.count_bytes() == 200
    said = capsys.readouterr().err
    assert said.count("warning") == 1
    assert f"{tmp_path / 'cache'}: the disk is full; for now the cache keeps what it has" in said
    # With no room at all, files are read without the cache.
    empty = ShardCache(str(tmp_path / "empty"), LARGE, shards)
    cache, free[0] = empty, 0
    assert [read(empty, shard) for shard in shards] == [None] * 4
    assert names(empty) == []
    assert "--cache-size" not in capsys.readouterr().err


def test_a_disk_that_was_full_for_a_moment_does_not_limit_the_cache_for_ever(tmp_path, monkeypatch):
    shards = make_shards(tmp_path / "store", [100] * 4)
    cache = ShardCache(str(tmp_path / "cache"), 300, shards)
    monkeypatch.setattr(shard_cache, "FULL_DISK_SECONDS", 0.3)
    with monkeypatch.context() as patch:
        patch.setattr(folders.os, "posix_fallocate", raise_disk_full)
        assert read(cache, shards[0]) is None
    begun = time.monotonic()
    assert read(cache, shards[0]) is None  # what filled the disk may still be there
    assert time.monotonic() - begun < 0.3
    time.sleep(0.35)
    for _ in range(2):
        assert [read(cache, shard) for shard in shards] == list(map(contents, shards))
    assert cache.folder.count_bytes() == 300  # as configured


def raise_disk_full(*given: object) -> None:
    raise OSError(errno.EDQUOT, "Disk quota exceeded")


def test_a_disk_that_shows_only_while_writing_that_it_is_full(tmp_path, monkeypatch):
    shards = make_shards(tmp_path / "store", [100])
    cache = ShardCache(str(tmp_path / "cache"), LARGE, shards)

    def fail(*given: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shard_cache.os, "pwrite", fail)
        assert read(cache, shards[0]) is None
    assert names(cache) == []


def test_a_cache_that_is_removed_while_a_file_comes_is_one_error_and_leaves_nothing_open(
    tmp_path, monkeypatch
):
    shards = make_shards(tmp_path / "store", [100])
    cache = ShardCache(str(tmp_path / "cache"), LARGE, shards)
    read_all = ShardCache._download

    def remove(*given: object) -> tuple[str, int]:
        shutil.rmtree(tmp_path / "cache")
        return read_all(*given)

    monkeypatch.setattr(ShardCache, "_download", staticmethod(remove))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StorageError, match=r"bertdata-cache\.lock: No such file or directory"):
        read(cache, shards[0])
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_disk_without_room_for_the_mark_of_a_run_is_one_error(tmp_path, monkeypatch):
    folder = CacheFolder(str(tmp_path / "cache"), "0" * 32)

    def fail(*given: object) -> int:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(folders.os, "open", fail)
    with pytest.raises(StorageError, match=f"{tmp_path / 'cache'}: no space left on the disk"):
        folder.use()


def test_a_cache_that_cannot_be_made_is_one_line(tmp_path):
    shards = make_shards(tmp_path / "store", [100])
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=rf"{tmp_path / 'file'}: cannot be used as cache_dir: Not a dir"):
        ShardCache(str(tmp_path / "file"), LARGE, shards)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (43_123_456_789, "43.1 GB")]
)
def test_bytes_in_words(count, text):
    assert format_bytes(count) == text


# Several processes


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., CacheProcess]]:
    """Start a process that reads files through the cache."""
    begun = []

    def start_process(shards: list[Shard], order: list[int], **more: object) -> CacheProcess:
        values = {
            "shards": [asdict(shard) for shard in shards], "order": order, "root": str(tmp_path / "cache"),
            "limit": LARGE, "log": str(tmp_path / "log"), "seconds": 0.0, "bytes_per_second": 1e12,
            "keeps": False,
        }  # fmt: skip
        begun.append(CacheProcess(json.dumps(values | more)))
        return begun[-1]

    yield start_process
    for one in begun:
        one.kill()


def test_the_processes_of_a_machine_fetch_each_file_once(tmp_path, start):
    shards = make_shards(tmp_path / "store", [1000 + number for number in range(12)])
    slow = {"seconds": 0.01, "bytes_per_second": 100_000}
    processes = [start(shards, np.roll(range(12), shift).tolist(), **slow) for shift in (0, 0, 5)]
    for process in processes:
        process.begin()
    wanted = {number: 1000 + number for number in range(12)}
    assert [dict(process.read_files()) for process in processes] == [wanted] * 3
    assert set(fetched(tmp_path).values()) == {1}
    assert len(fetched(tmp_path)) == 12


def test_after_a_kill_the_next_process_removes_the_half_file_and_fetches_it(tmp_path, start):
    shards = make_shards(tmp_path / "store", [100, 3_000_000])
    killed = start(shards, [0, 1], bytes_per_second=1_000_000)
    killed.begin()
    assert killed.read() == "0 100"
    folder = ShardCache(str(tmp_path / "cache"), LARGE, shards).folder
    growing = f"part-00001.{shards[1].md5}.growing"
    while growing not in folder.list_names():
        time.sleep(0.01)
    time.sleep(0.1)
    assert killed.process.poll() is None
    killed.kill()
    assert growing in folder.list_names()
    begun = time.monotonic()
    later = ShardCache(
        str(tmp_path / "cache"), 3_000_200, shards
    )  # the half file would not find room beside it
    assert read(later, shards[1]) == contents(shards[1])
    assert read(later, shards[0]) == contents(shards[0])
    assert time.monotonic() - begun < 5
    assert names(later) == sorted(later.names.values())


def test_a_worker_that_waits_for_another_one_does_not_list_the_cache_each_time(tmp_path, monkeypatch):
    folder = CacheFolder(str(tmp_path / "cache"), "0" * 32)
    name = f"part-00000.{'0' * 32}"
    begun = folder.begin(name, 100, LARGE, lambda file: None)
    assert begun.descriptor is not None
    with monkeypatch.context() as patch:
        patch.setattr(folder, "_list_without_half_files", None)
        assert folder.begin(name, 100, LARGE, lambda file: None).is_busy
    os.close(begun.descriptor)  # as after a kill
    again = folder.begin(name, 100, LARGE, lambda file: None)
    assert again.descriptor is not None
    os.close(again.descriptor)


def test_a_worker_that_waits_for_a_killed_one_fetches_the_file_itself(tmp_path, start):
    shards = make_shards(tmp_path / "store", [3_000_000])
    killed = start(shards, [0], bytes_per_second=1_000_000)
    killed.begin()
    folder = ShardCache(str(tmp_path / "cache"), LARGE, shards).folder
    while not folder.list_names():
        time.sleep(0.01)
    waiting = start(shards, [0])
    waiting.begin()
    time.sleep(0.3)
    assert folder.list_names() == {f"part-00000.{shards[0].md5}.growing"}
    killed.kill()
    assert waiting.read_files() == [(0, 3_000_000)]


def test_a_worker_does_not_wait_for_ever_for_a_suspended_one(tmp_path, start, monkeypatch, capsys):
    shards = make_shards(tmp_path / "store", [3_000_000])
    suspended = start(shards, [0], bytes_per_second=1_000_000)
    suspended.begin()
    cache = ShardCache(str(tmp_path / "cache"), LARGE, shards)
    while not names(cache):
        time.sleep(0.01)
    suspended.process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(shard_cache, "LONGEST_WAIT_SECONDS", 0.2)
    assert read(cache, shards[0]) is None
    assert (
        "another worker has not fetched it in 0.2 s; reading it without the cache" in capsys.readouterr().err
    )


def test_files_that_another_run_holds_are_not_dropped_and_its_kill_frees_them(tmp_path, start):
    shards = make_shards(tmp_path / "store", [100] * 4)
    other = start(shards, [0, 1], keeps=True)
    other.begin()
    assert dict(other.read_files()) == {0: 100, 1: 100}
    mine = ShardCache(str(tmp_path / "cache"), 300, shards)
    assert read(mine, shards[2]) == contents(shards[2])
    assert read(mine, shards[3]) == contents(shards[3])  # drops file 2
    assert names(mine) == sorted(mine.names[shards[number].path] for number in (0, 1, 3))
    descriptor = mine.hold(shards[3].file)
    assert read(mine, shards[2]) is None
    other.kill()
    assert read(mine, shards[2]) == contents(shards[2])
    assert descriptor is not None
    os.close(descriptor)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_kills_at_any_time_leave_a_cache_that_works(tmp_path, start, seed):
    shards = make_shards(tmp_path / "store", [40_000] * 10)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        pair = [
            start(shards, rng.permutation(10).tolist(), bytes_per_second=400_000, limit=170_000)
            for _ in range(2)
        ]
        for process in pair:
            process.begin()
        time.sleep(float(rng.uniform(0.0, 1.0)))
        pair[0].kill()
        assert len(pair[1].read_files()) == 10  # the other goes on, and ends
        pair[1].kill()
    last = ShardCache(str(tmp_path / "cache"), 170_000, shards)
    assert [read(last, shard) for shard in shards] == list(map(contents, shards))
    assert last.folder.count_bytes() <= 170_000
    assert not [name for name in names(last) if name.endswith(".growing")]


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    """Nothing but locks of the operating system says who is there."""
    folder = CacheFolder(str(tmp_path / "cache"), "0" * 32)
    code = f"""
from trainer.data.cache.folder import CacheFolder
with CacheFolder({str(tmp_path / "cache")!r}, "0" * 32).locked():
    print("locked", flush=True)
    input()
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    threading.Timer(0.2, holder.kill).start()
    with folder.locked():
        assert holder.wait() == -9
