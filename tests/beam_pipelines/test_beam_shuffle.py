"""``--shuffle global``: the shards of the specification, wherever and however often they are made."""

import json
from pathlib import Path

import pytest

from beam_pipelines.stages.shuffled import AddTokenCounts, TokenCounts
from bertdata.dataset.verify import verify_files
from golden.cases import GOLDEN, VOCABULARY
from golden.shuffled import SETTINGS, SHARDS
from tests.support.commands import contents, dataset_files
from tests.support.pipelines import PROCESSES, prepare, prepare_in_new_process, words

FLAGS = (
    *("--shuffle", "global", "--num-shards", str(SHARDS)),
    *("--max-seq-length", str(SETTINGS.max_seq_length), "--dupe-factor", str(SETTINGS.dupe_factor)),
    *("--max-predictions-per-seq", str(SETTINGS.max_predictions_per_seq)),
)


@pytest.fixture(scope="module")
def expected(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an undisturbed run."""
    output = tmp_path_factory.mktemp("shuffled") / "beam"
    assert prepare(corpus, VOCABULARY, output, *FLAGS) == 0
    return contents(output)


def test_shards_are_those_of_the_specification(expected: dict[str, bytes]) -> None:
    shards = json.loads(expected["manifest.json"])["shards"]
    golden = json.loads((GOLDEN / "shuffle" / "expected.json").read_text())
    assert {shard["name"]: shard["content_md5"] for shard in shards} == {
        name: values["content_md5"] for name, values in golden.items()
    }
    assert list(expected) == dataset_files(*golden)


def test_the_manifest_says_how_it_was_shuffled_and_verifies(
    corpus: list[Path], expected: dict[str, bytes], tmp_path: Path
) -> None:
    for name, data in expected.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    manifest = json.loads(expected["manifest.json"])
    assert manifest["settings"]["container"]["num_shards"] == SHARDS
    assert [entry["name"] for entry in manifest["inputs"]] == [part.name for part in corpus]
    assert sum(entry["documents"] for entry in manifest["inputs"]) == 66
    assert verify_files(str(tmp_path)).sound


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--direct_running_mode=multi_threading", "--direct_num_workers=2"), id="two threads"),
        pytest.param(("--direct_runner_bundle_repeat=1",), id="every bundle twice"),
        pytest.param(("--engine", "python"), id="the other engine"),
    ],
)
def test_nothing_but_text_and_settings_matters(
    corpus: list[Path], expected: dict[str, bytes], tmp_path: Path, flags: tuple[str, ...]
) -> None:
    assert prepare(corpus[::-1], VOCABULARY, tmp_path / "beam", *FLAGS, *flags) == 0
    assert contents(tmp_path / "beam") == expected


@pytest.mark.thorough
def test_several_processes_make_the_same_and_print_only_the_result(
    corpus: list[Path], expected: dict[str, bytes], tmp_path: Path
) -> None:
    run = prepare_in_new_process(words(corpus, VOCABULARY, tmp_path / "beam", *FLAGS, *PROCESSES))
    assert (run.returncode, run.stderr) == (0, "")
    assert contents(tmp_path / "beam") == expected


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "unfinished"])
def test_a_second_run_makes_only_what_is_missing_or_damaged(
    corpus: list[Path],
    expected: dict[str, bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    finished: bool,
) -> None:
    output = tmp_path / "beam"
    if finished:
        for name, data in expected.items():
            (output / name).parent.mkdir(exist_ok=True, parents=True)
            (output / name).write_bytes(data)
    else:
        bad = tmp_path / corpus[-1].name
        bad.write_bytes(b"\xff\n")
        assert prepare([*corpus[:-1], bad], VOCABULARY, output, *FLAGS) == 1
        assert not [name for name in contents(output) if not name.startswith("unfinished/")]
        assert prepare(corpus, VOCABULARY, output, *FLAGS) == 0
    shards = sorted(output.glob("shard-*"))
    shards[0].unlink()
    shards[1].write_bytes(shards[1].read_bytes()[:-1])
    times = [path.stat().st_mtime_ns for path in shards[2:]]
    capsys.readouterr()
    assert prepare(corpus, VOCABULARY, output, *FLAGS) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["shards_kept", str(SHARDS - 2)] in rows
    assert contents(output) == expected
    assert [path.stat().st_mtime_ns for path in shards[2:]] == times


def test_a_changed_input_makes_every_shard_again(
    corpus: list[Path], expected: dict[str, bytes], tmp_path: Path
) -> None:
    changed = tmp_path / "inputs" / corpus[0].name
    changed.parent.mkdir()
    changed.write_bytes(corpus[0].read_bytes() + b"\nOne more document.\n")
    output = tmp_path / "beam"
    assert prepare([changed, *corpus[1:]], VOCABULARY, output, *FLAGS) == 0
    assert contents(output)["MD5SUMS"] != expected["MD5SUMS"]
    assert prepare(corpus, VOCABULARY, output, *FLAGS) == 0
    assert contents(output) == expected


def test_a_directory_of_another_shuffle_is_refused(
    corpus: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "beam"
    assert prepare(corpus, VOCABULARY, output, *FLAGS) == 0
    capsys.readouterr()
    without = FLAGS[FLAGS.index("--num-shards") + 2 :]
    assert prepare(corpus, VOCABULARY, output, *without) == 2
    assert f"shuffle 'global, {SHARDS} shards', now 'none'" in capsys.readouterr().err
    assert prepare(corpus, VOCABULARY, output, "--shuffle", "global", "--num-shards", "3", *without) == 2
    assert "now 'global, 3 shards'" in capsys.readouterr().err


def test_more_shards_than_documents_are_refused_in_one_line(
    corpus: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--shuffle", "global", "--num-shards", "1000")
    assert prepare(corpus, VOCABULARY, tmp_path / "beam", *flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "beam_pipelines.prepare: error: --num-shards 1000: each shard must hold a document"
    )
    assert contents(tmp_path / "beam") == {}


def test_both_phases_share_documents_shard_by_shard(corpus: list[Path], tmp_path: Path) -> None:
    flags = ("--shuffle", "global", "--num-shards", "3", "--recipe", "habana", "--dupe-factor", "1")
    assert prepare(corpus, VOCABULARY, tmp_path / "beam", *flags) == 0
    made = contents(tmp_path / "beam")
    assert {name for name in made if name.endswith(".hdf5")} == {
        f"phase{phase}/shard-{number:05}-of-00003.hdf5" for phase in (1, 2) for number in range(3)
    }


def test_token_counts_of_parts_and_of_workers_are_added() -> None:
    parts = [TokenCounts({0: 3, 7: 5}, []), TokenCounts({7: 2}, []), TokenCounts({1: 4, 7: 1}, [])]
    adder = AddTokenCounts()
    workers = [adder.create_accumulator(), adder.create_accumulator()]
    workers[0] = adder.add_input(adder.add_input(workers[0], parts[0]), parts[1])
    workers[1] = adder.add_input(workers[1], parts[2])
    assert adder.extract_output(workers[0]).histogram == {0: 3, 7: 7}
    assert adder.extract_output(adder.merge_accumulators(workers)).histogram == {0: 3, 1: 4, 7: 8}
