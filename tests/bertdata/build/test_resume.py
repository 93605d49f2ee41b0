"""A run that died anywhere is taken up by the same command, and ends with an undisturbed run's files."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from beam_pipelines.prepare import main as prepare
from beam_pipelines.runners.worker import LAUNCHER
from tests.soak import kills
from tests.support.commands import SMALL, Outcome, Program, contents, finish, start
from tests.support.lock_holder import holder

Make = Callable[[], Outcome]


@pytest.fixture(params=["create", "Beam"])
def make(
    request: pytest.FixtureRequest,
    corpus: list[Path],
    small_vocabulary_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Make:
    """The sample corpus to ``out``, by one route or the other."""
    words = [*map(str, corpus), "--output", str(tmp_path / "out"), "--vocab", str(small_vocabulary_file)]

    def call() -> Outcome:
        if request.param == "create":
            return Program(capsys)("create", *words, *SMALL)
        capsys.readouterr()
        status = prepare(["--input", *words, *SMALL[:-1]])
        printed = capsys.readouterr()
        return Outcome(status, printed.out, printed.err)

    return call


@pytest.fixture
def unfinished(make: Make, corpus: list[Path], tmp_path: Path) -> dict[str, bytes]:
    """The undisturbed run's files; ``out`` is as if the run was killed before its last step."""
    output = tmp_path / "out"
    assert make().status == 0
    expected = contents(output)
    (output / "manifest.json").rename(tmp_path / "manifest.json")
    make_entries(output, tmp_path / "manifest.json")
    (output / "MD5SUMS").unlink()
    return expected


def make_entries(output: Path, manifest: Path) -> None:
    """The directory ``unfinished`` as it was before the manifest was written."""
    from bertdata.dataset.manifest import parse_manifest
    from bertdata.dataset.writer import Dataset

    found = parse_manifest(manifest.read_bytes(), str(manifest))
    dataset = Dataset(str(output), found.plan)
    for name in ("MD5SUMS", "vocab.txt"):
        (output / name).rename(manifest.with_name(name))
    shards = [
        path.rename(manifest.with_name(path.name)) for path in [*output.glob("part-*"), output / "lengths"]
    ]
    dataset.begin()
    for path in shards:
        path.rename(output / path.name)
    for entries in found.entries().values():
        dataset.record(*entries)
    manifest.with_name("MD5SUMS").rename(output / "MD5SUMS")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGE = [
    ("part-00001-of-00003.tfrecord", cut),
    ("part-00001-of-00003.tfrecord", flip),
    ("part-00001-of-00003.tfrecord", empty),
    ("part-00001-of-00003.tfrecord", Path.unlink),
    ("lengths/part-00001-of-00003.tfrecord.u16", flip),
    ("lengths/part-00001-of-00003.tfrecord.u16", Path.unlink),
    ("unfinished/part-00001-of-00003.tfrecord.json", cut),
    ("unfinished/part-00001-of-00003.tfrecord.json", empty),
    ("unfinished/part-00001-of-00003.tfrecord.json", Path.unlink),
]


@pytest.mark.parametrize(
    ("make", "name", "damage"),
    [
        *(("create", name, damage) for name, damage in DAMAGE),
        *(
            pytest.param("Beam", name, damage, marks=() if damage is Path.unlink else pytest.mark.thorough)
            for name, damage in DAMAGE
        ),
    ],
    indirect=["make"],
)
def test_what_was_damaged_after_it_was_noted_is_made_again_and_nothing_else(
    make: Make,
    unfinished: dict[str, bytes],
    tmp_path: Path,
    name: str,
    damage: Callable[[Path], object],
) -> None:
    output = tmp_path / "out"
    before = {path.name: kills.stamp(path) for path in output.glob("part-*")}
    damage(output / name)
    assert make().status == 0
    assert contents(output) == unfinished
    after = {path.name: kills.stamp(path) for path in output.glob("part-*")}
    assert [shard for shard in after if before.get(shard) != after[shard]] == ["part-00001-of-00003.tfrecord"]


@pytest.mark.parametrize("name", ["unfinished/part-00000-of-00003.tfrecord.0123456789abcdef.tmp", "MD5SUMS"])
def test_what_a_killed_run_was_writing_is_gone_when_the_next_one_ends(
    make: Make, unfinished: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    (tmp_path / "out" / name).write_bytes(b"half of")
    assert make().status == 0
    assert contents(tmp_path / "out") == unfinished


@pytest.mark.parametrize("damage", [cut, empty])
@pytest.mark.usefixtures("unfinished")
def test_a_plan_that_cannot_be_read_is_an_error_with_a_remedy(
    make: Make, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    output = tmp_path / "out"
    damage(output / "unfinished" / "plan.json")
    before = contents(output)
    outcome = make()
    assert outcome.status == 1
    (line,) = outcome.err.splitlines()
    assert "unfinished/plan.json: is not JSON: " in line
    assert line.endswith(f"; remove {output}, then run again")
    assert contents(output) == before


def test_a_directory_that_another_run_writes_to_is_refused_and_stays(make: Make, tmp_path: Path) -> None:
    with holder(tmp_path / "out" / "unfinished") as first:
        before = contents(tmp_path / "out")
        outcome = make()
        assert outcome.status == 2
        (line,) = outcome.err.splitlines()
        assert f": error: {tmp_path}/out: another run (process {first.pid} on " in line
        assert contents(tmp_path / "out") == before
    assert make().status == 0
    assert not (tmp_path / "out" / "unfinished").exists()


def test_moments_spread_over_the_whole_run_and_every_victim_has_its_turn() -> None:
    played: list[tuple[str, float, str]] = []

    def note(expected, parts, output, share, victim, rng):
        played.append((expected, share, victim))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kills, "kill_and_resume", note)
        patch.setattr(kills, "make_parts", lambda place, parts, part_bytes: [])
        patch.setattr(kills, "run_undisturbed", lambda route, parts, output: route.name)
        list(kills.all_rounds(kills.ROUTES, 12 * len(kills.ROUTES), 1, Path(), 1, 1))
    for route in kills.ROUTES:
        shares = sorted(share for name, share, _ in played if name == route.name)
        assert [int(share * 12) for share in shares] == list(range(12))
        assert {victim for name, _, victim in played if name == route.name} == set(kills.VICTIMS)


def test_a_difference_is_found_and_named() -> None:
    expected = {"a": b"1", "b": b"2"}
    assert kills.differences({"a": b"1", "b": b"2"}, expected) == []
    assert kills.differences({"a": b"0", "c": b"2"}, expected) == [
        "b is missing",
        "c is unexpected",
        "a differs",
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("which", [0, 1])
def test_a_beam_worker_killed_before_it_begins_ends_the_run(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path, which: int
) -> None:
    words = [*corpus, "--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL[:-1]]
    process = start("--input", *words, *kills.BEAM.words[1:], module="beam_pipelines.prepare")
    while len(workers := list(kills.list_descendants(process.pid))) < 2:
        assert process.poll() is None
    os.kill(workers[which], signal.SIGKILL)
    outcome = finish(process)
    assert outcome.status == 1, outcome.err
    told = [line for line in outcome.err.splitlines() if "error: a worker process died before its" in line]
    assert told == outcome.err.splitlines()[-1:], outcome.err  # once, and last
    assert all(kills.ends_soon(worker) for worker in workers)


@pytest.mark.thorough
@pytest.mark.parametrize("route", kills.ROUTES, ids=lambda route: route.name)
def test_random_kills_change_no_byte_and_leave_no_file(route: kills.Route, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    for one in kills.all_rounds([route], 3, seed, tmp_path, parts=8, part_bytes=300_000):
        assert one.faults == (), f"seed {seed}: {one}"


def test_a_beam_worker_that_begins_when_its_launcher_is_gone_ends_at_once() -> None:
    """Found by the kills above: it took whoever adopted it for its launcher, and waited for ever."""
    environment = {**os.environ, "PYTHONPATH": str(kills.ROOT), LAUNCHER: "0"}
    worker = subprocess.Popen([sys.executable, "-m", "beam_pipelines.runners.worker"], env=environment)
    try:
        assert worker.wait(20) == 1
    finally:
        worker.kill()
