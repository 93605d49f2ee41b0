"""``bertdata lineage`` of data: every step back to the dump, what cannot be followed, and damaged records."""

import json
import shutil
from pathlib import Path

import pytest

import bertdata as face
from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.lineages.read import read_lineage
from bertdata.lineages.step import Lineage
from tests.support.commands import Program
from tests.support.lineages import CORPUS, compute_md5, edit_json, make_chain, run_commands
from tests.support.paths import DUMP, GOLDEN, ROOT

OLDER = ROOT / "tests/bertdata/dataset/older_manifests"


@pytest.fixture
def bertdata(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``articles``, ``parts``, ``vocab.txt``, ``shards`` and ``packed`` of the golden dump."""
    place = tmp_path_factory.mktemp("lineage")
    make_chain(place)
    run_commands(("pack", place / "shards", "--output", place / "packed", "--workers=1"))
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(made, tmp_path / "place"))


def name_steps(lineage: Lineage) -> list[str]:
    return [step.name for step in lineage.list_steps()]


def test_every_step_is_found_with_the_md5s_of_its_files(made):
    lineage = face.lineage(made / "packed")
    steps = {step.name: step for step in lineage.list_steps()}
    assert list(steps) == ["extract", "segment", "train-vocab", "create", "pack"]
    assert lineage.faults == []
    places = {"extract": "articles", "segment": "parts", "create": "shards", "pack": "packed"}
    for name, directory in places.items():
        assert steps[name].record == compute_md5(made / directory / "manifest.json")
        assert steps[name].outputs
        for file in steps[name].outputs:
            path = made / directory / file.name
            assert (file.md5, file.bytes) == (compute_md5(path), path.stat().st_size)
    assert steps["train-vocab"].record == compute_md5(made / "vocab.txt.manifest.json")
    assert [file.md5 for file in steps["train-vocab"].outputs] == [compute_md5(made / "vocab.txt")]
    [dump] = steps["extract"].inputs
    assert (dump.role, dump.source, dump.files[0].md5) == ("dump", True, compute_md5(DUMP))


def test_a_vocabularys_texts_are_parts_of_the_chain_and_the_users_own(made):
    steps = {step.name: step for step in face.lineage(made / "shards").list_steps()}
    parts, own = steps["train-vocab"].inputs
    assert parts.made_by is steps["segment"]
    assert [file.name for file in parts.files] == ["part-00000-of-00500"]
    assert own.source
    expected = {compute_md5(path) for path in CORPUS.glob("part-*")}
    assert {file.md5 for file in own.files} == expected


def test_settings_and_versions_are_those_of_the_commands(made):
    steps = {step.name: step for step in face.lineage(made / "shards").list_steps()}
    assert steps["extract"].settings["extractor"]["name"] == "wikiextractor"
    assert steps["segment"].settings["eval_articles"] == 60
    assert steps["segment"].versions == {"Punkt": "3.4.5"}
    assert steps["create"].settings["objective"]["max_seq_length"] == 64
    assert steps["train-vocab"].settings["size"] == 3000
    assert steps["train-vocab"].versions.keys() == {"tokenizers"}


@pytest.mark.parametrize("artefact", ["shards", "packed"])
def test_the_lineage_is_the_same_after_the_data_have_moved(made, place, artefact, tmp_path):
    before = read_lineage(str(made / artefact)).as_json()
    moved = shutil.move(place / artefact, tmp_path / "elsewhere")
    shutil.rmtree(place)
    after = read_lineage(str(moved)).as_json()
    assert after["steps"][-1].pop("path") == str(moved)
    assert before["steps"][-1].pop("path") == str(made / artefact)
    assert after["steps"] == before["steps"]


@pytest.mark.parametrize(
    ("artefact", "steps"),
    [
        ("articles", ["extract"]),
        ("articles/manifest.json", ["extract"]),
        ("parts", ["extract", "segment"]),
        ("vocab.txt", ["train-vocab"]),
        ("vocab.txt.manifest.json", ["train-vocab"]),
        ("shards", ["extract", "segment", "train-vocab", "create"]),
    ],
)
def test_each_artefact_has_the_steps_before_it(made, artefact, steps):
    assert name_steps(read_lineage(str(made / artefact))) == steps


@pytest.mark.parametrize("name", ["articles/AA/wiki_00", "parts/eval.txt"])
def test_of_a_single_file_only_that_file_is_an_output(made, name):
    [result] = read_lineage(str(made / name)).results
    assert [file.md5 for file in result.outputs] == [compute_md5(made / name)]


def test_manifests_that_were_made_to_nest_endlessly_are_a_fault(place):
    sources = place / "packed/sources"
    for number in range(300):
        cited = shutil.copyfile(place / "packed/manifest.json", sources / f"{number}.json")
        edit_json(place / "packed/manifest.json", {"dataset_manifest": compute_md5(cited)})
    [fault] = read_lineage(str(place / "packed")).faults
    assert "more than 20 steps follow one another" in fault


def test_a_lineage_file_of_another_program_does_not_end_the_search_for_a_record(place):
    (place / "lineage.json").write_text("{}", encoding="utf-8")
    (place / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ManifestError, match="notes.txt: has no record of how it was made"):
        read_lineage(str(place / "notes.txt"))


def test_a_directory_of_several_datasets_shows_all_of_them(made):
    lineage = read_lineage(str(made))
    assert {Path(step.path).name for step in lineage.results} == {"articles", "parts", "shards", "packed"}
    assert len(lineage.list_steps()) == 5


def test_text_without_a_manifest_is_a_source(tmp_path):
    shutil.copytree(CORPUS, tmp_path / "text")
    words = (
        "create",
        tmp_path / "text/part-*",
        "--output",
        tmp_path / "shards",
        "--vocab",
        GOLDEN / "vocab.txt",
    )
    run_commands((*words, "--workers=1", "--recipe=nvidia", "--phase=1", "--dupe-factor=1"))
    [step] = face.lineage(tmp_path / "shards").list_steps()
    parts, vocabulary = step.inputs
    assert (parts.source, vocabulary.source) == (True, True)
    assert "no manifest" in parts.remark
    assert vocabulary.files[0].md5 == compute_md5(GOLDEN / "vocab.txt")


def test_a_missing_copy_is_said_where_it_is_missing(place, bertdata):
    (place / "shards/sources/articles.json").unlink()
    cited = compute_md5(place / "articles/manifest.json")
    told = bertdata("lineage", place / "shards")
    assert told.status == 0
    assert "articles: not followed further" in told.out
    assert f"the articles' manifest, md5 {cited}, is not at hand" in " ".join(told.out.split())


def test_a_damaged_copy_is_a_fault_and_exit_status_1(place, bertdata):
    copy = place / "shards/sources/parts.json"
    cited = compute_md5(copy)
    copy.write_bytes(copy.read_bytes() + b" ")
    told = bertdata("lineage", place / "shards")
    assert told.status == 1
    words = " ".join(told.out.replace("│", " ").split())
    assert (
        f"is not the parts' manifest that is cited: found md5 {compute_md5(copy)}, expected {cited}" in words
    )
    assert told.out.splitlines()[-1].endswith(", 1 fault")


FLIPS = {
    "no JSON": (b'"file"', b"\"file'", "is not JSON"),
    "no UTF-8": (b'"file"', b'"fil\xe4"', "is not JSON"),
    "another kind": (b'"kind": "vocabulary"', b'"kind": "vocabulari"', "kind: 'vocabulari' is not one of"),
    "another field": (b'"settings"', b'"settingr"', "'settings' is a required property"),
    "another number of words": (b'"one_word_in": 1', b'"one_word_in": 2', "was changed: found md5 "),
    "another name of a text": (
        b'"name": "part-00000-of-00500"',
        b'"name": "part-00009-of-00500"',
        "was changed: found md5 ",
    ),
    "other white space": (b'\n "kind"', b'\n  "kind"', "is not what its own entries make"),
}


@pytest.mark.parametrize("artefact", ["shards", "packed"])
@pytest.mark.parametrize(("old", "new", "reason"), FLIPS.values(), ids=FLIPS)
def test_a_damaged_copy_of_the_vocabularys_manifest_is_a_fault(place, bertdata, artefact, old, new, reason):
    copy = place / artefact / "sources/vocabulary.json"
    assert copy.read_bytes().count(old) == 1
    copy.write_bytes(copy.read_bytes().replace(old, new))
    told = bertdata("lineage", place / artefact)
    assert told.status == 1
    [fault] = face.lineage(place / artefact).faults
    assert fault.startswith(f"{copy}: ")
    assert reason in fault
    assert told.out.splitlines()[-1].endswith(", 1 fault")
    verdict = bertdata("verify-md5", place / artefact)
    assert verdict.status == 1
    assert f"{copy}: damaged; " in verdict.out + verdict.err


def test_the_manifest_of_another_vocabulary_is_a_fault(place):
    copy = place / "shards/sources/vocabulary.json"
    edit_json(copy, {"file/md5": "0" * 32})
    [fault] = face.lineage(place / "shards").faults
    assert fault == (
        f"{copy}: is the manifest of another vocabulary: found md5 {'0' * 32}, expected md5 "
        f"{compute_md5(place / 'vocab.txt')}"
    )


def test_an_input_that_the_step_before_has_not_written_is_a_fault(place):
    manifest = place / "shards/manifest.json"
    edit_json(manifest, {"inputs/0/bytes": 7})
    [fault] = face.lineage(place / "shards").faults
    assert "part-00000-of-00500: 7 bytes" in fault


def test_no_record_and_no_path_are_one_line_each(tmp_path, bertdata):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("text")
    bertdata("lineage", tmp_path / "a").assert_one_error(1, "has no record of how it was made")
    bertdata("lineage", tmp_path / "a" / "b.txt").assert_one_error(1, "has no record of how it was made")
    bertdata("lineage", tmp_path / "missing").assert_one_error(2, "no such file or directory")


def test_a_file_that_its_directory_does_not_list_has_no_record(place):
    (place / "shards" / "other.tfrecord").write_bytes(b"")
    with pytest.raises(ManifestError, match="is not listed by the record"):
        face.lineage(place / "shards" / "other.tfrecord")


def test_the_json_lists_every_step_once_and_links_them_by_record(made, bertdata):
    told = json.loads(bertdata("lineage", made / "packed", "--json").out)
    assert told["sound"] is True
    records = [step["record"] for step in told["steps"]]
    assert len(set(records)) == len(records) == 5
    assert told["results"] == [compute_md5(made / "packed/manifest.json")]
    cited = {one["made_by"] for step in told["steps"] for one in step["inputs"]} - {None}
    assert cited == set(records[:-1])


def test_a_dataset_at_a_url_is_followed_too(made):
    for path in sorted(file for file in (made / "shards").rglob("*") if file.is_file()):
        url = f"memory://lineage/shards/{path.relative_to(made / 'shards')}"
        with storage.open_output(url) as file:
            file.write(path.read_bytes())
    lineage = read_lineage("memory://lineage/shards")
    assert lineage.faults == []
    local = [step.record for step in read_lineage(str(made / "shards")).list_steps()]
    assert [step.record for step in lineage.list_steps()] == local


@pytest.mark.parametrize("name", ["bert", "packed", "lddl", "squad", "shuffled"])
def test_manifests_of_version_2_are_read(name):
    lineage = read_lineage(str(OLDER / "version_2" / name))
    assert lineage.faults == []
    [result] = lineage.results
    expected = {
        "bert": "create",
        "shuffled": "create",
        "squad": "features",
        "packed": "pack",
        "lddl": "convert",
    }
    assert result.name == expected[name]
    assert result.facts["manifest"] == "of format version 2"
    assert result.record == compute_md5(OLDER / "version_2" / name / "manifest.json")


def test_the_page_of_a_dataset_has_every_step(made, tmp_path):
    face.report(made / "shards", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for step in face.lineage(made / "shards").list_steps():
        assert step.record in page
        assert step.program in page
