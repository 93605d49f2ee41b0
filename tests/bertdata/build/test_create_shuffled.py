"""``bertdata create --shuffle global``: Beam's bytes, however often a run was stopped."""

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bertdata.steps.shuffle as shuffling
from bertdata.build.shard_task import ShardTask, TaskResult, run_task
from bertdata.build.shuffle.sorted_files import PartSortTask, sort_to_file
from bertdata.errors import SettingsError, StorageError
from golden.cases import GOLDEN, VOCABULARY
from golden.shuffled import SETTINGS, SHARDS
from tests.support.commands import Outcome, Program, contents, files_below
from tests.support.pipelines import prepare

SHUFFLE = ("--shuffle", "global", "--num-shards", str(SHARDS))
SIZES = (
    *("--max-seq-length", str(SETTINGS.max_seq_length), "--dupe-factor", str(SETTINGS.dupe_factor)),
    *("--max-predictions-per-seq", str(SETTINGS.max_predictions_per_seq)),
)
FLAGS = (*SHUFFLE, *SIZES)
NAMES = [f"shard-{number:05}-of-{SHARDS:05}.tfrecord" for number in range(SHARDS)]

Create = Callable[..., Outcome]


@pytest.fixture(scope="module")
def expected(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an undisturbed run of the pipeline."""
    output = tmp_path_factory.mktemp("shuffled") / "beam"
    assert prepare(corpus, VOCABULARY, output, *FLAGS) == 0
    return contents(output)


@pytest.fixture
def create(bertdata: Program, corpus: list[Path], tmp_path: Path) -> Create:
    """The command on the sample corpus, into tmp_path/out."""

    def call(*flags: object, parts: list[Path] = corpus, workers: int = 1) -> Outcome:
        places = ["--output", tmp_path / "out", "--vocab", VOCABULARY, "--workers", workers]
        return bertdata("create", *parts, *places, *(flags or FLAGS))

    return call


def stamps(directory: Path) -> dict[str, int]:
    """The time at which each shard was written."""
    return {path.name: path.stat().st_mtime_ns for path in directory.glob("shard-*")}


def told(outcome: Outcome) -> list[str]:
    """The first word of each line on the work."""
    return [line.split()[0] for line in outcome.err.splitlines()]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_files_are_those_of_the_pipeline(
    create: Create, corpus: list[Path], expected: dict[str, bytes], tmp_path: Path, workers: int
) -> None:
    outcome = create(workers=workers, parts=corpus[::-1])
    assert (outcome.status, told(outcome)) == (0, ["sorted"] * len(corpus) + ["made"] * SHARDS)
    assert contents(tmp_path / "out") == expected
    golden = json.loads((GOLDEN / "shuffle" / "expected.json").read_text())
    shards = json.loads(expected["manifest.json"])["shards"]
    assert {shard["name"]: shard["content_md5"] for shard in shards} == {
        name: values["content_md5"] for name, values in golden.items()
    }


def test_the_python_engine_makes_the_same(create: Create, expected: dict[str, bytes], tmp_path: Path) -> None:
    assert create(*FLAGS, "--engine", "python").status == 0
    assert contents(tmp_path / "out") == expected


def test_both_phases_are_those_of_the_pipeline(create: Create, corpus: list[Path], tmp_path: Path) -> None:
    flags = ("--shuffle", "global", "--num-shards", "3", "--recipe", "habana", "--dupe-factor", "1")
    assert prepare(corpus, VOCABULARY, tmp_path / "beam", *flags) == 0
    first = create(*flags, workers=2)
    assert (first.status, told(first)) == (0, ["sorted"] * 3 + ["made"] * 3)
    assert re.search(
        r"made shard-00001-of-00003.hdf5 \(phase 1: \d+ examples, phase 2: \d+ examples\)", first.err
    )
    assert contents(tmp_path / "out") == contents(tmp_path / "beam")
    (tmp_path / "out" / "phase1" / "shard-00001-of-00003.hdf5").unlink()
    assert create(*flags).status == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "beam")


def test_a_dataset_in_a_bucket_is_the_same(
    bertdata: Program, corpus: list[Path], expected: dict[str, bytes]
) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    url = "memory://shuffled/out"
    assert (
        bertdata("create", *corpus, "--output", url, "--vocab", VOCABULARY, "--workers=1", *FLAGS).status == 0
    )
    found = {name.removeprefix("/shuffled/out/"): files.cat(name) for name in files.find("/shuffled/out")}
    assert found == expected


def test_the_shards_of_a_finished_dataset_are_kept_without_sorting(
    create: Create, expected: dict[str, bytes], tmp_path: Path
) -> None:
    assert create().status == 0
    before = stamps(tmp_path / "out")
    again = create(workers=2)
    assert (again.status, told(again)) == (0, ["kept"] * SHARDS)
    assert stamps(tmp_path / "out") == before
    assert contents(tmp_path / "out") == expected


def test_a_shard_that_is_missing_or_damaged_is_made_again_and_no_other(
    create: Create, expected: dict[str, bytes], tmp_path: Path
) -> None:
    assert create().status == 0
    before = stamps(tmp_path / "out")
    (tmp_path / "out" / NAMES[1]).unlink()
    (tmp_path / "out" / NAMES[3]).write_bytes(b"cut short")
    again = create()
    assert (again.status, told(again)) == (0, ["sorted"] * 3 + ["kept"] * 3 + ["made"] * 2)
    assert contents(tmp_path / "out") == expected
    after = stamps(tmp_path / "out")
    assert [name for name in NAMES if after[name] == before[name]] == [NAMES[0], NAMES[2], NAMES[4]]


@pytest.fixture
def stopped(
    create: Create, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, bytes]:
    """The files of a run that stopped after two shards."""

    def stop(task: ShardTask) -> TaskResult:
        if task.number == 2:
            raise StorageError("the disk is gone")
        return run_task(task)

    with monkeypatch.context() as patch:
        patch.setattr(shuffling, "run_task", stop)
        outcome = create()
    assert outcome.status == 1
    assert told(outcome) == ["sorted"] * 3 + ["made"] * 2 + ["bertdata:"]
    found = contents(tmp_path / "out")
    assert {NAMES[0], NAMES[1]} < set(found)
    assert sum(name.endswith(".scratch") for name in found) == len(corpus)
    return found


def count_sorted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the parts that are sorted from now on."""
    import bertdata.build.shuffle.sorted_files as module

    names: list[str] = []
    real = module.sort_part

    def sort(plan: Any, path: str, source: Any) -> Any:
        names.append(Path(path).name)
        return real(plan, path, source)

    monkeypatch.setattr(module, "sort_part", sort)
    return names


@pytest.mark.usefixtures("stopped")
def test_a_stopped_run_goes_on_with_its_sorted_parts_and_its_shards(
    create: Create, expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, again_sorted = stamps(tmp_path / "out"), count_sorted(monkeypatch)
    outcome = create()
    assert (outcome.status, told(outcome)) == (0, ["kept"] * 5 + ["made"] * 3)
    assert again_sorted == []
    assert contents(tmp_path / "out") == expected
    assert {name: time for name, time in stamps(tmp_path / "out").items() if name in before} == before


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("ending", ["scratch", "json"])
@pytest.mark.parametrize("damage", [cut, flip, Path.unlink])
@pytest.mark.usefixtures("stopped")
def test_a_sorted_part_that_was_damaged_is_sorted_again_and_no_other(
    create: Create,
    corpus: list[Path],
    expected: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], object],
    ending: str,
) -> None:
    (path,) = (tmp_path / "out" / "unfinished").glob(f"sorted*{corpus[1].name}.{ending}")
    damage(path)
    again_sorted = count_sorted(monkeypatch)
    assert create().status == 0
    assert again_sorted == [corpus[1].name]
    assert contents(tmp_path / "out") == expected


@pytest.mark.usefixtures("stopped")
def test_a_part_that_changed_is_sorted_again_and_every_shard_made_again(
    create: Create, corpus: list[Path], expected: dict[str, bytes], tmp_path: Path, monkeypatch: Any
) -> None:
    changed = tmp_path / "inputs" / corpus[0].name
    changed.parent.mkdir()
    changed.write_bytes(corpus[0].read_bytes() + b"\nOne more document.\n")
    again_sorted = count_sorted(monkeypatch)
    outcome = create(parts=[changed, *corpus[1:]])
    assert (outcome.status, told(outcome)[3:]) == (0, ["made"] * SHARDS)
    assert again_sorted == [changed.name]
    assert contents(tmp_path / "out")["MD5SUMS"] != expected["MD5SUMS"]
    assert create().status == 0
    assert contents(tmp_path / "out") == expected


@pytest.mark.usefixtures("stopped")
def test_the_pipeline_goes_on_with_a_stopped_run_of_the_command(
    corpus: list[Path], expected: dict[str, bytes], tmp_path: Path
) -> None:
    assert prepare(corpus, VOCABULARY, tmp_path / "out", *FLAGS) == 0
    assert contents(tmp_path / "out") == expected


def test_no_documents_go_through_the_command_itself(
    create: Create, corpus: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So memory is that of a part or a shard: what travels between processes is small."""
    sizes: list[int] = []

    def sort(task: PartSortTask) -> Any:
        result = sort_to_file(task)
        sizes.append(len(pickle.dumps((task, result))))
        return result

    def make(task: ShardTask) -> TaskResult:
        sizes.append(len(pickle.dumps(task)))
        return run_task(task)

    monkeypatch.setattr(shuffling, "sort_to_file", sort)
    monkeypatch.setattr(shuffling, "run_task", make)
    assert create().status == 0
    assert len(sizes) == len(corpus) + SHARDS
    assert max(sizes) < 8_000 < min(part.stat().st_size for part in corpus)


def test_more_shards_than_documents_are_refused_and_leave_the_directory_free(
    create: Create, expected: dict[str, bytes], tmp_path: Path
) -> None:
    for flags in ((), ("--recipe", "habana", "--dupe-factor", "1")):
        outcome = create("--shuffle", "global", "--num-shards", "1000", *flags)
        assert outcome.status == 2
        assert outcome.err.splitlines()[-1].startswith(
            "bertdata: error: --num-shards 1000: each shard must hold a document; the corpus has about 66"
        )
        assert files_below(tmp_path / "out") == []
    assert create().status == 0
    assert contents(tmp_path / "out") == expected


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--shuffle", "global"), "--shuffle global needs --num-shards N"),
        (("--num-shards", "4"), "--num-shards goes with --shuffle global"),
        (("--shuffle", "global", "--num-shards", "0"), "'0' is out of range, expected 1 or more"),
        (("--shuffle", "some", "--num-shards", "4"), "invalid choice: 'some'"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_wrong_usage_is_one_line_and_makes_nothing(
    create: Create, tmp_path: Path, flags: tuple[str, ...], words: str, dry: tuple[str, ...]
) -> None:
    create(*flags, *SIZES, *dry).assert_one_error(2, words)
    assert not (tmp_path / "out").exists()


def test_a_directory_of_another_shuffle_is_refused(create: Create) -> None:
    assert create().status == 0
    create(*SIZES).assert_one_error(2, f"shuffle 'global, {SHARDS} shards', now 'none'")
    create("--shuffle", "global", "--num-shards", "3", *SIZES).assert_one_error(2, "now 'global, 3 shards'")


def test_the_dry_run_tells_the_shards_and_writes_nothing(create: Create, tmp_path: Path) -> None:
    lines = create(*FLAGS, "--dry-run").out.splitlines()
    assert not (tmp_path / "out").exists()
    assert [line.split()[:5] for line in lines if line.startswith("  make")] == [
        ["make", name, "from", "3", "parts"] for name in NAMES
    ]
    assert create().status == 0
    (tmp_path / "out" / NAMES[2]).unlink()
    lines = create(*FLAGS, "--dry-run").out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == ["keep"] * 2 + ["make"] + [
        "keep"
    ] * 2


def test_a_bad_part_is_an_error_or_left_out_as_by_the_pipeline(
    create: Create, corpus: list[Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"\xff\n")
    parts = [*corpus, bad]
    outcome = create(parts=parts)
    assert outcome.status == 1
    assert outcome.err.splitlines()[-1].startswith(f"bertdata: error: {bad}: line 1: byte 0xff")
    skipping = create(*FLAGS, "--skip-bad-inputs", parts=parts)
    assert (skipping.status, told(skipping).count("skipped")) == (0, 1)
    assert "the part is left out" in skipping.err
    assert prepare(parts, VOCABULARY, tmp_path / "beam", *FLAGS, "--skip-bad-inputs") == 0
    made = contents(tmp_path / "out")
    assert made == contents(tmp_path / "beam")
    assert create(*FLAGS, "--skip-bad-inputs", parts=parts).status == 0
    assert create(parts=parts).status == 1
    assert {name: made[name] for name in NAMES} == {
        name: data for name, data in contents(tmp_path / "out").items() if name in NAMES
    }


def test_nothing_but_bad_parts_leaves_the_directory_free(create: Create, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"\xff\n")
    outcome = create(*FLAGS, "--skip-bad-inputs", parts=[bad])
    assert outcome.status == 1
    assert outcome.err.splitlines()[-1].endswith("every input was skipped, nothing is left")
    assert files_below(tmp_path / "out") == []


def test_the_function_shuffles_too(corpus: list[Path], expected: dict[str, bytes], tmp_path: Path) -> None:
    from bertdata.steps.create import create

    sizes = {
        "max_seq_length": SETTINGS.max_seq_length,
        "max_predictions_per_seq": SETTINGS.max_predictions_per_seq,
        "dupe_factor": SETTINGS.dupe_factor,
    }
    places: dict[str, Any] = {"output": tmp_path / "out", "vocab": VOCABULARY, "workers": 1}
    made = create(corpus, **places, **sizes, shuffle="global", num_shards=SHARDS)
    assert contents(tmp_path / "out") == expected
    assert (made.kept, [dataset.directory for dataset in made.datasets]) == (0, [str(tmp_path / "out")])
    assert create(corpus, **places, **sizes, shuffle="global", num_shards=SHARDS).kept == SHARDS
    for wrong in ({"shuffle": "some"}, {"num_shards": 3}, {"shuffle": "global", "num_shards": 0}):
        with pytest.raises(SettingsError):
            create(corpus, **places, **sizes, **wrong)
