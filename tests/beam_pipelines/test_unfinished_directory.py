"""``unfinished/`` of the text parts stays until the pipeline has ended: Beam may repeat a task until then."""

import json
from pathlib import Path

import pytest

from beam_pipelines.prepare import main
from bertdata.io.directory_protocol import Commit
from tests.support.paths import DUMP
from tests.support.pipelines import SMALL, words, write_articles

pytestmark = pytest.mark.usefixtures("punkt_tables")


def write_source(kind: str, place: Path) -> Path:
    if kind == "articles":
        return write_articles(place / "articles", 12)
    if kind == "dump":
        return DUMP
    (place / "a.jsonl").write_text("".join(json.dumps({"text": f"Line {n}."}) + "\n" for n in range(40)))
    return place / "a.jsonl"


@pytest.mark.parametrize("kind", ["jsonl", "articles", "dump"])
def test_unfinished_files_are_removed_when_no_task_can_run_again(
    small_vocabulary_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    released = list[tuple[str, bool]]()
    release = Commit.release

    def note_and_release(commit: Commit) -> None:
        name = str(Path(commit.directory).relative_to(tmp_path))
        released.append((name, Path(commit.unfinished).is_dir()))
        release(commit)

    monkeypatch.setattr(Commit, "release", note_and_release)
    withheld = () if kind == "jsonl" else ("--eval-articles", "10")
    flags = ("--input-kind", kind, *withheld, *SMALL)
    source = write_source(kind, tmp_path)
    assert main(words([source], small_vocabulary_file, tmp_path / "beam", *flags)) == 0
    assert ("beam.text", True) in released
    assert all(is_there for _, is_there in released), "a task had removed it before"
    assert len(released) == len(dict(released))
    assert not list(tmp_path.rglob("unfinished"))
