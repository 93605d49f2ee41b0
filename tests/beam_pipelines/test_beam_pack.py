"""``python -m beam_pipelines.pack``: the files of ``bertdata pack``, on any runner."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import bertdata
import bertdata.dataset.sorted_runs as runs
from beam_pipelines.pack import main
from golden.cases import VOCABULARY
from tests.support.commands import contents
from tests.support.fork_server import forking_python
from tests.support.paths import ROOT
from tests.support.pipelines import PROCESSES

FLAGS = ("--layout", "habana", "--num-shards", "4")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, and what the command packs of it."""
    place = tmp_path_factory.mktemp("packing")
    corpus = [str(path) for path in sorted((Path(VOCABULARY).parent / "corpus").glob("part-*"))]
    sizes = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 2, "workers": 1}
    bertdata.create(corpus, place / "shards", vocab=VOCABULARY, **sizes)
    bertdata.pack(place / "shards", place / "packed", layout="habana", num_shards=4, workers=1)
    return place


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), id="one thread"),
        pytest.param(("--direct_running_mode=multi_threading", "--direct_num_workers=2"), id="two threads"),
        pytest.param(("--direct_runner_bundle_repeat=1",), id="every bundle twice"),
    ],
)
def test_the_files_are_those_of_the_command(place, tmp_path, flags, capsys):
    assert main([str(place / "shards"), "--output", str(tmp_path / "out"), *FLAGS, *flags]) == 0
    assert contents(tmp_path / "out") == contents(place / "packed")
    metadata = (tmp_path / "out_metadata.json").read_bytes()
    assert metadata == (place / "packed_metadata.json").read_bytes()
    if "--direct_runner_bundle_repeat=1" in flags:
        return  # counters count both attempts
    totals = json.loads((place / "packed" / "manifest.json").read_text())["totals"]
    printed = dict(line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  "))
    assert printed["examples"] == str(totals["examples"])
    assert printed["bytes"] == str(totals["bytes"])
    assert printed["shards_kept"] == "0"


@pytest.mark.thorough
def test_worker_processes_make_the_same_files(place, tmp_path):
    words = [str(place / "shards"), "--output", str(tmp_path / "out"), *FLAGS, *PROCESSES]
    done = subprocess.run(
        [forking_python("beam"), "-m", "beam_pipelines.pack", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "out") == contents(place / "packed")


def test_sizes_of_runs_make_no_difference(place, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUN_TOKENS", 3000)
    assert main([str(place / "shards"), "--output", str(tmp_path / "out"), *FLAGS]) == 0
    assert contents(tmp_path / "out") == contents(place / "packed")


def test_a_finished_dataset_is_kept_and_a_lost_shard_made_again(place, tmp_path):
    shutil.copytree(place / "packed", tmp_path / "out")
    kept = tmp_path / "out" / "mixed_strategies_part_0.hdf5"
    stamp = kept.stat().st_mtime_ns
    (tmp_path / "out" / "mixed_strategies_part_2.hdf5").unlink()
    assert main([str(place / "shards"), "--output", str(tmp_path / "out"), *FLAGS]) == 0
    assert contents(tmp_path / "out") == contents(place / "packed")
    assert kept.stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (("--layout", "best"), 2, "layout 'best' is not known"),
        (("--num-shards", "100000"), 2, "--num-shards is 100000, expected at most"),
        (("--seed", "7", "--no-such-flag", "x"), 2, "--no-such-flag"),
    ],
)
def test_wrong_usage_is_one_line_and_leaves_nothing(place, tmp_path, capsys, flags, status, message):
    assert main([str(place / "shards"), "--output", str(tmp_path / "out"), *flags]) == status
    error = capsys.readouterr().err.strip()
    assert error.startswith("beam_pipelines.pack: error: ")
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_directory_of_another_plan_is_refused(place, tmp_path, capsys):
    shutil.copytree(place / "packed", tmp_path / "out")
    assert (
        main([str(place / "shards"), "--output", str(tmp_path / "out"), "--layout", "habana", "--seed=7"])
        == 2
    )
    assert "packing_seed 12345, now 7" in capsys.readouterr().err
    assert contents(tmp_path / "out") == contents(place / "packed")


def test_a_damaged_shard_is_an_error_and_leaves_nothing(place, tmp_path, capsys):
    source = tmp_path / "source"
    shutil.copytree(place / "shards", source)
    [path] = source.glob("part-00001*")
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    assert main([str(source), "--output", str(tmp_path / "out"), *FLAGS]) == 1
    assert "part-00001-of-00003.tfrecord: found md5" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
