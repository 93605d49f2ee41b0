"""Runs that train from a bucket through a cache on the local disk, and what they say about it."""

import json
from collections import namedtuple
from pathlib import Path

import fsspec
import pytest

from benchmarks.slow_store import SlowStore, count_reads, register_slow_store
from tests.support.commands import SMALL
from tests.support.object_stores import Store, one_store
from tests.support.training_runs import losses, refuse, start_workers, tensors, words
from trainer.data.cache.forecast import AtOnce
from trainer.data.cache.shard_cache import ShardCache
from trainer.run import remote_output
from trainer.run.data_cache import MachineReads, check_cache_size, describe_reads, round_up_gigabytes

pytestmark = pytest.mark.usefixtures("one_thread")

SHORT = ("--steps=6", "--checkpoint-every=3")


def upload(store: Store, dataset: Path) -> str:
    """Upload a dataset to the store. Returns its URL."""
    for path in sorted(dataset.rglob("*")):
        if path.is_file():
            store.put(f"set/{path.relative_to(dataset)}", path.read_bytes())
    return f"{store.url}/set"


def copies(cache: Path) -> list[str]:
    """The names of all copies of shards in a cache directory, without their md5s."""
    names = [path.name.rpartition(".")[0] for path in cache.glob("bertdata-cache-*/*")]
    return sorted(name for name in names if name.endswith(".tfrecord"))


@one_store
def test_a_run_through_a_cache_has_the_bytes_of_a_local_run(store, trainer, training_set, tmp_path):
    local, cache = tmp_path / "local", tmp_path / "cache"
    assert trainer(*words(training_set, local, *SHORT)).status == 0
    url = upload(store, training_set)
    data = (f"--train-data={url}", f"--eval-data={url}", "--eval-every=3", "--eval-examples=20")
    run = trainer(*words(None, tmp_path / "run", *SHORT, *data, f"--cache-dir={cache}"))
    assert run.status == 0, run.err
    assert tensors(tmp_path / "run", 6) == tensors(local, 6)
    shards = sorted(path.name for path in training_set.glob("*.tfrecord"))
    assert copies(cache) == shards
    said = f"this machine reads {len(shards)} of {len(shards)} files in an epoch, "
    assert said in run.err
    assert f"; cache {cache}, up to " in run.err
    # The next run, or the resumed one, needs no file of the store.
    for name in shards:
        store.remove(f"set/{name}")
        store.put(f"set/{name}", bytes((training_set / name).stat().st_size))
    more = trainer(*words(None, tmp_path / "more", *SHORT, *data, f"--cache-dir={cache}"))
    assert more.status == 0, more.err
    assert tensors(tmp_path / "more", 6) == tensors(local, 6)


@pytest.fixture
def store_log(tmp_path, monkeypatch) -> Path:
    """What the workers read from the store at ``slow://``."""
    monkeypatch.setenv("TRAINER_STORE_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def count_shard_reads(log: Path) -> dict[str, int]:
    return {name: count for name, count in count_reads(log)[0].items() if ".tfrecord" in name}


def test_two_workers_share_a_cache_and_read_each_file_once(trainer, training_set, tmp_path, store_log):
    cache = tmp_path / "cache"
    alone = trainer(*words(training_set, tmp_path / "alone", *SHORT, "--accumulation=2"))
    assert alone.status == 0, alone.err
    data = (f"--train-data=slow://{training_set}", f"--cache-dir={cache}")
    shared = start_workers("torchrun", 2, *words(None, tmp_path / "run", *SHORT, *data))
    assert shared.status == 0, shared.err
    assert "downloads the files" not in shared.err
    for one, two in zip(losses(tmp_path / "run"), losses(tmp_path / "alone"), strict=True):
        assert one["mlm_loss"] == pytest.approx(two["mlm_loss"], rel=1e-5)
    shards = sorted(path.name for path in training_set.glob("*.tfrecord"))
    assert copies(cache) == shards
    assert count_shard_reads(store_log) == {name: 1 for path in shards for name in (path, f"{path}.u16")}


@pytest.fixture(scope="module")
def many(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus in 12 shards, 10 times, so that the loader is never ahead by the whole of it."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("many")
    documents = [one for path in corpus for one in path.read_text().split("\n\n") if one.strip()]
    parts = []
    for number in range(12):
        parts.append(place / f"part-{number:05}")
        parts[-1].write_text("\n\n".join(documents[number::12]) + "\n\n")
    made = (f"--output={place / 'set'}", f"--vocab={small_vocabulary_file}", *SMALL, "--dupe-factor=10")
    assert main(["create", *map(str, parts), *made]) == 0
    return place / "set"


def test_each_evaluation_file_is_downloaded_once_although_the_training_data_fill_the_cache(
    trainer, many, tmp_path, monkeypatch
):
    register_slow_store()
    monkeypatch.setattr(SlowStore, "log", tmp_path / "log")
    (tmp_path / "log").touch()
    data = (
        f"--train-data=slow://{many}/part-0000*.tfrecord",
        f"--eval-data=slow://{many}/part-0001*.tfrecord",
    )
    sizes = [path.stat().st_size for path in many.rglob("part-*")]
    cache = (f"--cache-dir={tmp_path / 'cache'}", f"--cache-size={round_up_gigabytes(sum(sizes) * 19 // 20)}")
    more = (
        "--steps=40",
        "--batch-size=128",
        "--num-hidden-layers=1",
        "--hidden-size=8",
        "--eval-every=8",
        "--open-files=1",
    )
    run = trainer(*words(None, tmp_path / "run", *more, *data, *cache))
    assert run.status == 0, run.err
    assert len((tmp_path / "run/evaluation.csv").read_text().splitlines()) == 6  # with the header
    reads = count_shard_reads(tmp_path / "log")
    evaluated = {name: count for name, count in reads.items() if name.startswith("part-0001")}
    assert len(evaluated) == 4  # with the lengths of their examples
    assert set(evaluated.values()) == {1}
    assert max(reads.values()) > 1  # the cache is smaller than the training data


def test_a_poll_downloads_again_only_what_finds_no_room_in_the_cache(
    trainer, training_set, tmp_path, monkeypatch
):
    run = words(training_set, tmp_path / "run", *SHORT, "--keep-checkpoints=9", "--checkpoint-every=2")
    assert trainer(*run).status == 0
    register_slow_store()
    monkeypatch.setattr(SlowStore, "log", tmp_path / "log")
    (tmp_path / "log").touch()
    size = sum(path.stat().st_size for path in training_set.glob("*.tfrecord"))
    cache = (f"--cache-dir={tmp_path / 'cache'}", f"--cache-size={round_up_gigabytes(size * 3 // 4)}")
    poll = ("--poll", "--poll-timeout=60", f"--output-dir={tmp_path / 'run'}")
    done = trainer("evaluate", f"--eval-data=slow://{training_set}", *poll, *cache)
    assert done.status == 0, done.err
    reads = count_shard_reads(tmp_path / "log")
    *kept, other = sorted(reads[path.name] for path in training_set.glob("*.tfrecord"))
    assert kept == [1, 1]
    assert other >= 3  # there are three checkpoints


@pytest.mark.thorough
def test_without_a_cache_each_worker_reads_and_is_told_of_it(training_set, tmp_path, store_log):
    url = f"slow://{training_set}"
    run = start_workers("torchrun", 2, *words(None, tmp_path / "run", *SHORT, f"--train-data={url}"))
    assert run.status == 0, run.err
    said = f"{url}: each of the 2 workers of this machine downloads the files that it reads, up to "
    assert run.err.count(said) == 1
    assert " at the same time; with --cache-dir DIR, the machine downloads each file once\n" in run.err
    assert min(count_shard_reads(store_log).values()) >= 2


@pytest.mark.thorough
@one_store
@pytest.mark.parametrize("update", [1, 3, 5])
def test_a_killed_run_leaves_a_cache_that_the_resumed_run_uses(
    store, trainer, training_set, tmp_path, monkeypatch, update
):
    local, cache = tmp_path / "local", tmp_path / "cache"
    assert trainer(*words(training_set, local, *SHORT)).status == 0
    run = words(
        None,
        tmp_path / "run",
        *SHORT,
        f"--train-data={upload(store, training_set)}",
        f"--cache-dir={cache}",
    )
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 0, "update": update}))
    assert start_workers("alone", 1, *run).status != 0
    monkeypatch.delenv("TRAINER_ACCIDENT")
    resumed = trainer(*run, "--resume")
    assert resumed.status == 0, resumed.err
    assert tensors(tmp_path / "run", 6) == tensors(local, 6)
    assert not list(cache.rglob("*.growing"))


@one_store
def test_a_cache_that_is_too_small_is_one_line_before_the_model(store, trainer, training_set, tmp_path):
    url = upload(store, training_set)
    run = words(None, tmp_path / "run", *SHORT, f"--train-data={url}", f"--cache-dir={tmp_path / 'cache'}")
    size = sum(path.stat().st_size for path in training_set.rglob("*.tfrecord*"))  # and the lengths
    small = trainer(*run, "--cache-size=0.000001")
    said = "cache_size is 1.0 kB, but the 3 files that this machine needs at the same time have "
    refuse(small, 2, said, f"; give --cache-size {round_up_gigabytes(size)} or more")
    assert "building the model" not in small.err
    assert not (tmp_path / "run").exists()
    # what the line says is enough
    assert trainer(*run, f"--cache-size={round_up_gigabytes(size)}").status == 0


def test_a_cache_on_a_small_disk_is_refused_or_limited(tmp_path, monkeypatch):
    cache = ShardCache(str(tmp_path), 10**12, [])
    cache.room = 3000
    check_cache_size(cache, AtOnce(2, 2500))
    assert cache.limit == 3000
    with pytest.raises(
        Exception, match=r"the disk has room for 3.0 kB, but the 4 files .* have 4.0 kB"
    ) as caught:
        check_cache_size(cache, AtOnce(4, 4000))
    assert getattr(caught.value, "exit_status", None) == 1


def test_a_dataset_on_a_local_disk_is_not_cached(trainer, training_set, tmp_path):
    cache = tmp_path / "cache"
    run = trainer(*words(training_set, tmp_path / "run", *SHORT, f"--cache-dir={cache}"))
    assert run.status == 0, run.err
    assert f"{training_set}: is on a local disk, so --cache-dir has no effect" in run.err
    assert not cache.exists()


@pytest.mark.parametrize(
    ("flags", "status", "said"),
    [
        (
            ["--cache-dir=s3://bucket/cache"],
            2,
            "cache_dir is s3://bucket/cache, expected a directory on this",
        ),
        (["--cache-dir=x", "--cache-size=0"], 2, "cache_size is 0"),
        (["--cache-dir=x", "--cache-size=large"], 2, "cache"),
    ],
)
def test_wrong_values_are_one_line(trainer, training_set, tmp_path, flags, status, said):
    refuse(trainer(*words(training_set, tmp_path / "run", *flags)), status, said)


def test_a_size_without_a_directory_has_no_effect_and_that_is_said(trainer, training_set, tmp_path):
    run = trainer(*words(training_set, tmp_path / "run", *SHORT, "--cache-size=5"))
    assert run.status == 0, run.err
    assert "accepted, without effect on device cpu: cache_size" in run.err


def test_the_log_names_what_each_machine_reads(tmp_path):
    cache = ShardCache(str(tmp_path), 20 * 10**9, [])
    cache.sizes = cache.sizes.__class__(500)
    cache.sizes[:] = 1000
    one = describe_reads(cache, [MachineReads(125, 125_000)])
    assert (
        one == f"this machine reads 125 of 500 files in an epoch, 125.0 kB; cache {tmp_path}, up to 20.0 GB"
    )
    two = describe_reads(cache, [MachineReads(126, 126_000), MachineReads(125, 125_000)])
    assert two.startswith("each of 2 machines reads 125 to 126 of 500 files in an epoch, at most 126.0 kB; ")
    assert describe_reads(cache, [MachineReads(1, 10)] * 3).startswith("each of 3 machines reads 1 of 500 ")


@pytest.mark.parametrize(
    ("count", "text"), [(1, "0.000000001"), (123_456, "0.000124"), (3_000_000_001, "3.01"), (10**12, "1000")]
)
def test_a_size_is_suggested_as_a_user_types_it(count, text):
    assert round_up_gigabytes(count) == text
    assert float(text) * 1e9 >= count


# A run whose own directory is in a bucket


def test_a_full_local_disk_is_one_line_before_the_model(trainer, training_set, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "home"))
    free = [1000]
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(remote_output.shutil, "disk_usage", lambda path: usage(0, 0, free[0]))
    run = words(training_set, "memory://bucket/full", *SHORT)
    full = trainer(*run)
    refuse(full, 1, f"{tmp_path / 'home'}", "the disk has 1e-06 GB free, a checkpoint takes up to ")
    assert "set BERTDATA_CACHE to a directory on a larger disk" in full.err
    assert "building the model" not in full.err
    free[0] = 2_000_000  # one checkpoint has room, and two are kept
    enough = trainer(*run)
    assert enough.status == 0, enough.err
    assert "warning: " in enough.err
    assert "3 more will be there at the same time" in enough.err
    fsspec.filesystem("memory").rm("/bucket/full", recursive=True)
