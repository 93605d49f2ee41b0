"""Plans and notes that are damaged, of another version or edited: one line, or their piece is made again."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bertdata.io.directory_protocol import Commit
from bertdata.io.manifest_file import dump_json, seal_json, unseal_json
from bertdata.wiki.articles import files as article_files
from tests.support.commands import SMALL, Program, contents
from tests.support.dumps import page, write_dump
from tests.support.paths import EXTRACTED

ODD = (None, 1, -5, 1.5, "../../x", [], {}, [1], 1 << 70)
"""Values of another type than a field has, or than it may have."""

MAY_BE_NULL = ("unknown_tokens", "lost_tokens")

KINDS = {"extract": 2, "mlperf": 2, "nvidia": 2, "create": 2, "shuffled": 3}
"""Kinds of notes of each step, with the plan."""


@pytest.fixture
def commands(
    tmp_path: Path,
    kit: Path,
    corpus: list[Path],
    small_vocabulary_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, list[object]]:
    """The arguments of each step, without its output."""
    monkeypatch.setenv("NLTK_DATA", str(kit / "nltk_data"))
    monkeypatch.setattr(article_files, "FILE_BYTES", 20_000)
    pages = [page(f"Page {n}", "Water runs down. " * 400, number=n) for n in range(1, 10)]
    dump = write_dump(tmp_path / "enwiki-20200101-pages.xml", *pages)
    shards = ("--training-shards", 2, "--test-shards", 1)
    create = ["create", *corpus, "--vocab", small_vocabulary_file, *SMALL[:-1]]
    return {
        "extract": ["extract", dump],
        "mlperf": ["segment", EXTRACTED, "--eval-articles", 1],
        "nvidia": ["segment", EXTRACTED, "--recipe", "nvidia", *shards],
        "create": create,
        "shuffled": [*create, "--shuffle", "global", "--num-shards", 2],
    }


def damaged(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The note with each kind of damage, told in words; the last ones are sealed as ours are."""
    value = unseal_json(data, "here")
    yield "cut", data[: len(data) // 2]
    yield "empty", b""
    yield "no text", b"\xff\xfe"
    yield "no object", b"[]"
    yield "deep", b"[" * 100_000
    yield "edited", data.replace(b"2", b"3")
    yield "not sealed", dump_json(value)
    yield "another version", seal_json({**value, "format_version": 3})
    yield "empty object", seal_json({})
    for place in places(value):
        yield f"without {place}", seal_json(changed(value, place, None, remove=True))
        for odd in ODD:
            if odd is None and place[-1] in MAY_BE_NULL:
                continue
            if type(odd) is not type(found(value, place)) or odd == 1 << 70:
                yield f"{place} {odd!r}", seal_json(changed(value, place, odd))


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields, and of the first item of each list."""
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    for name, item in inner:
        yield (name,)
        yield from ((name, *path) for path in places(item))


def found(value: Any, place: tuple[Any, ...]) -> Any:
    for name in place:
        value = value[name]
    return value


def changed(value: Any, place: tuple[Any, ...], new: Any, *, remove: bool = False) -> Any:
    """A copy of the value with another item at the place, or with none."""
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(place) > 1:
        copy[place[0]] = changed(value[place[0]], place[1:], new, remove=remove)
    elif remove:
        del copy[place[0]]
    else:
        copy[place[0]] = new
    return copy


def leave_unfinished(run: Callable[[Path], Any], out: Path) -> None:
    """The directory of a run that was killed before its last step."""

    class Killed(Exception):
        pass

    def stop(*_: object, **__: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Commit, "finish", stop)
        patch.setattr(Commit, "give_up", lambda self: None)
        with pytest.raises(Killed):
            run(out)


@pytest.mark.thorough
@pytest.mark.parametrize("step", KINDS)
def test_a_damaged_note_is_one_line_or_costs_its_piece(
    step: str, commands: dict[str, list[object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Program(capsys)

    def run(out: Path) -> Any:
        return program(*commands[step], "--output", out, "--workers", 1)

    whole, base, out = tmp_path / "whole", tmp_path / "base", tmp_path / "out"
    assert run(whole).status == 0
    leave_unfinished(run, base)
    expected = contents(whole)
    notes = {re.sub(r"\d.*", "", path.name): path for path in (base / "unfinished").glob("*.json")}
    assert len(notes) == KINDS[step]
    for note in notes.values():
        for what, data in damaged(note.read_bytes()):
            shutil.copytree(base, out)
            (out / "unfinished" / note.name).write_bytes(data)
            outcome = run(out)
            told = [line for line in outcome.err.splitlines() if "error: " in line]
            assert "Traceback" not in outcome.err
            if outcome.status:
                assert len(told) == 1, (note.name, what)
                assert "unfinished" in told[0] or str(out) in told[0], (note.name, what)
            else:
                assert contents(out) == expected, (note.name, what)
            shutil.rmtree(out)
