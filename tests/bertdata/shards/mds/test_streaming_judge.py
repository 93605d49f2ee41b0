"""Mosaic's own reader and writer, in an environment of their own, beside ours."""

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from bertdata.shards.containers import open_reader
from bertdata.shards.mds.directory import read_directory, write_directory
from bertdata.shards.mds.index import ShardForm, parse_index
from tests.support.paths import ROOT

pytestmark = pytest.mark.thorough

JUDGE = ROOT / "tests" / "support" / "streaming_judge.py"
ALONE = ("mosaicml-streaming==0.13.0", "accelerate")
"""Installed without what they require: image and cloud packages, and another transformers."""
BESIDE = ("numpy<2.2", "xxhash<4", "zstd", "brotli", "python-snappy", "catalogue", "tqdm")
BLOCKS = ("--objective=mlm", "--no-masks", "--max-seq-length=64")


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs the judge's commands. torch and transformers are this environment's."""
    place = tmp_path_factory.mktemp("judge")
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    for words in (["--no-deps", *ALONE], BESIDE):
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *words], capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"no environment with mosaicml-streaming can be made here: {done.stderr[-300:]}")
    [packages] = place.glob("lib/python*/site-packages")
    (packages / "zz_ours.pth").write_text(sysconfig.get_paths()["purelib"])  # behind its own packages

    def run(*words: object) -> str:
        done = subprocess.run(
            [python, JUDGE, *map(str, words)], capture_output=True, text=True, cwd=place, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return run


def run_ours(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "bertdata", *map(str, words)], check=True, cwd=ROOT)


@pytest.fixture(scope="session")
def directories(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus as MDS in each of our ways."""
    place = tmp_path_factory.mktemp("directories")
    words = ["create", *corpus, f"--vocab={small_vocabulary_file}", *BLOCKS, "--workers=1"]
    run_ours(*words, "--format=mds", f"--output={place / 'created'}")
    run_ours("convert", place / "created", place / "cut", "--to=mds", "--size-limit=9000", "--len")
    hashed = ("--compression=zstd:9", "--hashes=sha1,xxh64", "--size-limit=9000")
    run_ours("convert", place / "created", place / "zstd", "--to=mds", *hashed)
    return {name: place / name for name in ("created", "cut", "zstd")}


@pytest.mark.parametrize("name", ["created", "cut", "zstd"])
def test_streaming_reads_our_directories(judge, directories, tmp_path, name):
    place = tmp_path / "data"
    shutil.copytree(directories[name], place)  # Streaming decompresses into it
    judge("read", place, tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    expected = [
        [sample["id"], sample["input_ids"].tolist(), sample.get("len", -1)]
        for sample in read_directory(str(directories[name]))
    ]
    assert len(expected) > 100
    assert found["streamed"] == found["local"] == expected
    with open_reader(str(place / "index.json")) as reader:  # raw files beside the compressed ones
        assert [example.ids for example in reader] == [ids for _, ids, _ in expected]


@pytest.mark.parametrize(
    "settings",
    [
        {"size_limit": 3000},
        {"size_limit": None, "hashes": ["md5", "sha1", "xxh64"]},
        {"size_limit": 5000, "hashes": ["xxh128"], "compression": "zstd:9"},
        {"size_limit": 4000, "compression": "br:4"},
        {"size_limit": 4000, "compression": "snappy"},
        {"size_limit": 4000, "compression": "bz2"},
        {"size_limit": 4000, "compression": "gz:1"},
    ],
    ids=str,
)
def test_both_writers_make_the_same_files(judge, kit, tmp_path, settings):
    values = json.loads((kit / "encoders" / "mds" / "types.json").read_text())
    known = parse_index((kit / "encoders" / "mds" / "types" / "index.json").read_bytes(), "index")[0].form
    columns = dict(zip(known.names, known.types, strict=True))
    given = {"columns": columns, "settings": settings, "samples": values * 3}
    (tmp_path / "given.json").write_text(json.dumps(given))
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    judge("write", tmp_path / "given.json", theirs)
    samples = list(read_directory(str(theirs)))
    assert len(samples) == len(given["samples"])
    ours.mkdir()
    hashes = tuple(settings.get("hashes", ()))
    write_directory(str(ours), ShardForm.from_columns(columns, **{**settings, "hashes": hashes}), samples)
    if "compression" not in settings:
        files = sorted(path.name for path in theirs.iterdir())
        assert sorted(path.name for path in ours.iterdir()) == files
        for file in files:
            assert (ours / file).read_bytes() == (theirs / file).read_bytes(), file
    else:
        indexes = [parse_index((place / "index.json").read_bytes(), "index") for place in (ours, theirs)]
        raw = [[(entry.raw, entry.samples, entry.form) for entry in entries] for entries in indexes]
        assert raw[0] == raw[1]
        again = [sample["b_str"] for sample in read_directory(str(ours))]
        assert again == [sample["b_str"] for sample in samples]


def test_transformers_trains_from_a_directory(judge, directories):
    losses = json.loads(judge("train", directories["cut"]).splitlines()[-1])
    assert len(losses) == 4
    assert losses[-1] < losses[0] - 0.3
