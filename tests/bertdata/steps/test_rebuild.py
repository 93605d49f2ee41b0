"""``bertdata rebuild`` of data: the same md5s, the first step that differs, sources, and the commands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bertdata as face
from bertdata.errors import InputError, MissingInputError, SettingsError
from tests.support.commands import Program
from tests.support.lineages import (
    CORPUS,
    compute_md5,
    edit_json,
    make_chain,
    run_commands,
)
from tests.support.paths import DUMP, GOLDEN, ROOT

pytestmark = pytest.mark.usefixtures("rebuild_in_process")


@pytest.fixture
def bertdata(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``articles``, ``parts``, ``vocab.txt`` and ``shards`` of the golden dump."""
    place = tmp_path_factory.mktemp("rebuild")
    make_chain(place)
    return place


@pytest.fixture
def shards(made: Path, tmp_path: Path) -> Path:
    """A copy of the dataset to manipulate, without the directories of earlier steps."""
    return Path(shutil.copytree(made / "shards", tmp_path / "shards"))


def test_everything_is_made_again_from_the_dump_and_the_texts(shards, made, tmp_path, bertdata):
    again = tmp_path / "again"
    told = bertdata("rebuild", shards, "--from", DUMP, CORPUS, "--output", again)
    assert told.status == 0, told.err
    assert told.out.splitlines()[-1] == f"{shards}: 4 steps rebuilt, every md5 is equal"
    for here, there in {"articles": "articles", "parts": "parts", "dataset": "shards"}.items():
        for name in ("manifest.json", "MD5SUMS"):
            assert compute_md5(again / here / name) == compute_md5(made / there / name)
    assert compute_md5(again / "vocab.txt") == compute_md5(made / "vocab.txt")


def test_a_second_rebuild_keeps_what_is_finished_and_makes_what_is_missing(shards, tmp_path, bertdata):
    words = ("rebuild", shards, "--from", DUMP, CORPUS, "--output", tmp_path / "again")
    assert bertdata(*words).status == 0
    shutil.rmtree(tmp_path / "again" / "dataset")
    before = (tmp_path / "again/vocab.txt").stat().st_mtime_ns
    told = bertdata(*words)
    assert told.status == 0
    assert "train-vocab" not in told.out
    assert (tmp_path / "again/vocab.txt").stat().st_mtime_ns == before


def test_a_manipulated_shard_is_named(shards, tmp_path):
    md5 = compute_md5(shards / "part-00000-of-00500.tfrecord")
    edit_json(shards / "manifest.json", {"shards/0/md5": "0" * 32})
    result = face.rebuild(shards, [DUMP, CORPUS], tmp_path / "again")
    assert not result.is_equal
    assert result.differences[0].step.name == "create"
    assert str(result.differences[0]) == (
        f"{tmp_path}/again/dataset/part-00000-of-00500.tfrecord: found md5 {md5}, expected md5 {'0' * 32}"
    )


def test_a_changed_setting_gives_other_shards(shards, tmp_path, bertdata):
    edit_json(shards / "manifest.json", {"settings/objective/random_seed": 7})
    told = bertdata("rebuild", shards, "--from", DUMP, CORPUS, "--output", tmp_path / "again")
    assert told.status == 1
    assert "--random-seed 7" in told.out
    assert "part-00000-of-00500.tfrecord: found md5" in told.out
    assert told.out.splitlines()[-1].endswith(
        "the first step that differs is step 4, bertdata create; nothing after it was rebuilt"
    )


def test_a_field_that_changes_no_file_is_compared_too(shards, tmp_path):
    edit_json(shards / "manifest.json", {"inputs/0/sentences": 1})
    [difference] = face.rebuild(shards, [DUMP, CORPUS], tmp_path / "again").differences
    assert difference.where == f"{tmp_path}/again/dataset/manifest.json: inputs/0/sentences"
    assert difference.expected == "1"


def test_a_manipulated_earlier_step_is_the_first_that_differs(shards, tmp_path):
    """The parts' manifest was forged, and all md5s that cite it."""
    parts = shards / "sources/parts.json"
    edit_json(parts, {"settings/eval_articles": 59})
    edit_json(shards / "manifest.json", {"parts_manifest": compute_md5(parts)})
    result = face.rebuild(shards, [DUMP, CORPUS], tmp_path / "again")
    assert [step.name for step in result.steps] == ["extract", "segment"]
    assert {difference.step.name for difference in result.differences} == {"segment"}
    assert not (tmp_path / "again/dataset").exists()


def test_a_missing_source_is_named(shards, tmp_path, bertdata):
    output = tmp_path / "again"
    told = bertdata("rebuild", shards, "--from", CORPUS, "--output", output)
    told.assert_one_error(2, f"the dump {DUMP.name} of bertdata extract", compute_md5(DUMP), "--from")
    assert not output.exists()


def test_another_file_of_the_same_name_is_no_source(shards, tmp_path, bertdata):
    other = tmp_path / DUMP.name
    other.write_bytes(DUMP.read_bytes() + b"\n")
    told = bertdata("rebuild", shards, "--from", other, CORPUS, "--output", tmp_path / "again")
    told.assert_one_error(1, str(other), f"found md5 {compute_md5(other)}")
    with pytest.raises(InputError):
        face.rebuild(shards, other, tmp_path / "again")


def test_a_source_is_found_whatever_its_name_is(shards, tmp_path):
    renamed = tmp_path / "sources" / "renamed.xml"
    renamed.parent.mkdir()
    shutil.copyfile(DUMP, renamed)
    result = face.rebuild(shards, [renamed.parent, CORPUS], tmp_path / "again")
    assert result.is_equal
    assert [step.name for step in result.steps] == ["extract", "segment", "train-vocab", "create"]


def test_the_kept_vocabulary_is_taken_without_its_texts(shards, tmp_path, bertdata):
    told = bertdata("rebuild", shards, "--from", DUMP, "--output", tmp_path / "again")
    assert told.status == 0
    assert f"{shards}/vocab.txt: is taken as the vocabulary" in told.out
    assert "3 steps rebuilt, every md5 is equal" in told.out
    (shards / "vocab.txt").unlink()
    with pytest.raises(MissingInputError, match="part-00000-of-00003"):
        face.rebuild(shards, DUMP, tmp_path / "other")


def test_a_gap_in_the_lineage_ends_the_rebuild(shards, tmp_path, bertdata):
    (shards / "sources/articles.json").unlink()
    told = bertdata("rebuild", shards, "--from", DUMP, CORPUS, "--output", tmp_path / "again")
    told.assert_one_error(1, "the articles' manifest", "is not at hand")


def test_code_is_imported_only_if_the_user_trusts_it(shards, tmp_path, bertdata):
    edit_json(shards / "manifest.json", {"settings/objective/name": "os.path:OWN"})
    words = ("rebuild", shards, "--from", DUMP, CORPUS, "--output", tmp_path / "again", "--dry-run")
    bertdata(*words).assert_one_error(2, "the code os.path:OWN", "--trust os.path:OWN")


def test_a_value_that_looks_like_a_flag_stays_a_value(made, tmp_path, bertdata):
    for name in ("vocab.txt", "vocab.txt.manifest.json"):
        shutil.copyfile(made / name, tmp_path / name)
    edit_json(tmp_path / "vocab.txt.manifest.json", {"settings/special": ["--overwrite"]})
    sources = (CORPUS, made / "parts")
    told = bertdata(
        "rebuild", tmp_path / "vocab.txt", "--from", *sources, "--output", tmp_path / "again", "--dry-run"
    )
    assert " --special=--overwrite" in told.out


def test_the_output_must_not_hold_the_artefact(shards, tmp_path, bertdata):
    told = bertdata("rebuild", shards, "--from", DUMP, "--output", shards)
    told.assert_one_error(2, "is an input")


FLAGS = {
    "defaults": (),
    "nvidia, phase 2": ("--recipe=nvidia", "--phase=2", "--dupe-factor=1"),
    "both sizes of a recipe": ("--recipe=nvidia", "--max-seq-length=48", "--max-predictions-per-seq=8"),
    "other shares": ("--mask-share=0.5", "--random-share=0.25", "--kept-share=0.25", "--dupe-factor=1"),
    "cased": ("--no-lower-case", "--dupe-factor=1", "--whole-word-mask", "--random-seed=-3"),
    "remasked": ("--dialect=graphcore", "--dupe-factor=1", "--remask"),
    "bins": ("--format=parquet", "--bin-size=32", "--dupe-factor=1"),
    "shuffled": ("--shuffle=global", "--num-shards=2", "--dupe-factor=1"),
    "unmasked blocks": ("--objective=mlm", "--no-masks", "--format=parquet", "--blocks=complete"),
    "albert": ("--objective=sop", "--dupe-factor=1", "--ngram=2", "--no-favor-shorter-ngram"),
    "spans": ("--objective=span", "--longest-span=4", "--max-seq-length=64"),
    "electra": ("--recipe=electra", "--max-seq-length=64"),
}


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_dataset_of_any_settings_is_made_again(flags, tmp_path):
    text = tmp_path / "text.txt"
    text.write_bytes((CORPUS / "part-00000-of-00003").read_bytes()[:4_000].rpartition(b"\n")[0] + b"\n")
    words = ("create", text, "--output", tmp_path / "shards", "--vocab", GOLDEN / "vocab.txt", "--workers=1")
    run_commands((*words, *flags))
    sources = [text, GOLDEN / "vocab.txt"]
    for dataset in sorted(path.parent for path in (tmp_path / "shards").rglob("manifest.json")):
        result = face.rebuild(dataset, sources, tmp_path / f"again-{dataset.name}")
        assert result.is_equal, result.differences
        assert len(result.steps) == 1


def test_records_with_settings_packed_and_converted_are_made_again(tmp_path):
    corpus = [path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("part-*"))]
    documents = "".join(corpus).split("\n\n")[:40]
    table = tmp_path / "t.csv"
    rows = ["body;tag\n", *(f'"{one.strip()}";x\n'.replace('""', "") for one in documents if '"' not in one)]
    table.write_text("".join(rows), encoding="utf-8")
    run_commands(
        (
            *(
                "create",
                table,
                "--output",
                tmp_path / "shards",
                "--vocab",
                GOLDEN / "vocab.txt",
                "--workers=1",
            ),
            *("--text-field=body", "--separator=;", "--sentences=lines", "--part-size=0.01"),
            *("--dedup=exact", "--input-kind=csv", "--dupe-factor=1", "--max-seq-length=64"),
            *("--max-predictions-per-seq=10", "--format=parquet"),
        ),
        ("pack", tmp_path / "shards", "--output", tmp_path / "packed", "--seed=5", "--workers=1"),
        ("convert", tmp_path / "shards", tmp_path / "arrow", "--to", "arrow", "--num-shards=2"),
    )
    sources = [table, GOLDEN / "vocab.txt"]
    for name in ("packed", "arrow"):
        result = face.rebuild(tmp_path / name, sources, tmp_path / "again")
        assert result.is_equal, result.differences
        assert [step.name for step in result.steps][:2] == ["segment", "create"]


@pytest.mark.thorough
def test_the_commands_of_a_dry_run_work_when_typed(shards, made, tmp_path, bertdata):
    renamed = tmp_path / "with space.xml"
    shutil.copyfile(DUMP, renamed)
    told = bertdata("rebuild", shards, "--from", renamed, CORPUS, "--output", tmp_path / "again", "--dry-run")
    assert not (tmp_path / "again").exists()
    programs = tmp_path / "programs"
    programs.mkdir()
    script = programs / "bertdata"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m bertdata "$@"\n')
    script.chmod(0o755)
    path = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    subprocess.run(["sh", "-e"], input=told.out, text=True, check=True, env=path, cwd=tmp_path)
    assert compute_md5(tmp_path / "again/dataset/MD5SUMS") == compute_md5(made / "shards/MD5SUMS")


@pytest.mark.parametrize("artefact", ["articles", "parts", "vocab.txt"])
def test_each_artefact_is_made_again(made, artefact, tmp_path):
    result = face.rebuild(made / artefact, [DUMP, CORPUS, made / "parts"], tmp_path / "again")
    assert result.is_equal, result.differences


def test_features_without_their_run_are_refused(tmp_path):
    squad = ROOT / "tests/bertdata/dataset/older_manifests/version_2/squad"
    sources = [squad.parent.parent, squad.parent.parent / "version_2" / "bert" / "vocab.txt"]
    with pytest.raises(SettingsError, match="rebuild the run"):
        face.rebuild(squad, sources, tmp_path / "again")
