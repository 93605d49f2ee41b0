"""``verify-md5 --chain``: from a dataset back to its dump, and every way in which a link may be broken."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bertdata.text.manifest import parse_text_manifest
from bertdata.text.reading import find_extracted_files
from bertdata.text.segment import segment_files
from bertdata.text.settings import SegmentSettings
from bertdata.wiki.extract import extract_dump
from tests.support.commands import Outcome, Program, contents, files_below
from tests.support.fake_splitters import load_period_splitter
from tests.support.paths import GOLDEN

DUMP = GOLDEN / "dump" / "allerwiki-20200101-pages-articles.xml"
SETTINGS = SegmentSettings(eval_articles=3, block_size=0.2)
SMALL = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1", "--workers=1")
LINKS = ("dataset", "text", "articles")


@pytest.fixture
def bertdata(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``extracted``, ``results`` and ``shards`` of the golden dump."""
    place = tmp_path_factory.mktemp("chain")
    extract_dump(DUMP, place / "extracted")
    segment_files(
        find_extracted_files([str(place / "extracted")]).files,
        str(place / "results"),
        SETTINGS,
        load_period_splitter,
    )
    assert make_shards(place) == 0
    return place


def make_shards(place: Path) -> int:
    from bertdata.cli.main import main

    parts = sorted(map(str, (place / "results").glob("part-*")))
    return main(
        ["create", *parts, "--output", str(place / "shards"), "--vocab", str(GOLDEN / "vocab.txt"), *SMALL]
    )


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(made, tmp_path / "place"))


def chain(bertdata: Program, place: Path, *sources: object) -> Outcome:
    words = [word for source in sources for word in ("--source", source)]
    return bertdata("verify-md5", place / "shards", "--chain", *words)


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def edit(path: Path, change: Callable[[dict], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def test_a_sound_chain_is_one_line_a_link(bertdata: Program, made: Path) -> None:
    outcome = chain(bertdata, made, made / "results", made / "extracted", DUMP)
    assert outcome.status == 0, outcome.out
    digests = [md5(made / name / "manifest.json") for name in ("shards", "results", "extracted")]
    assert outcome.out.splitlines() == [
        f"{made}/shards: dataset, mlperf, 1 shard; manifest md5 {digests[0]}",
        f"  <- parts: text, mlperf, Punkt 3.4.5, 3 files; manifest md5 {digests[1]}",
        f"  <- articles: articles, wikiextractor 3.1.0, 1 file; manifest md5 {digests[2]}",
        f"  <- dump: {DUMP.name}, {DUMP.stat().st_size} bytes, md5 {md5(DUMP)}, date 2020-01-01",
        f"{made}/shards: 5 files right, sound",
    ]


def test_the_copies_lead_to_the_dump_where_nothing_upstream_is_at_hand(
    bertdata: Program, place: Path
) -> None:
    for upstream in ("results", "extracted"):
        shutil.rmtree(place / upstream)
    outcome = chain(bertdata, place)
    assert outcome.status == 0
    assert outcome.out.count("  <- ") == 3
    assert f"md5 {md5(DUMP)}" in outcome.out


def test_manifests_cite_digests_and_copy_what_they_cite(made: Path) -> None:
    dataset, text = (json.loads((made / d / "manifest.json").read_text()) for d in ("shards", "results"))
    assert dataset["parts_manifest"] == md5(made / "results" / "manifest.json")
    assert text["articles_manifest"] == md5(made / "extracted" / "manifest.json")
    assert dataset["settings"]["text"] == {"punkt": text["punkt"]}
    assert text["punkt"]["variant"] == "3.4.5"
    assert text["punkt"]["tables"]["abbrev_types.txt"] == "2bf81dc7dbfebd59c26aa9f23ed2729c"
    assert text["inputs"][0]["name"] == "AA/wiki_00"
    copies = contents(made / "shards" / "sources")
    assert copies == {
        "parts.json": (made / "results" / "manifest.json").read_bytes(),
        "articles.json": (made / "extracted" / "manifest.json").read_bytes(),
    }
    assert (made / "shards" / "vocab.txt").read_bytes() == (GOLDEN / "vocab.txt").read_bytes()


@pytest.mark.parametrize("directory", ["extracted", "results", "shards"])
def test_every_directory_is_verified_by_its_manifest(bertdata: Program, place: Path, directory: str) -> None:
    where = place / directory
    sound = bertdata("verify-md5", where)
    assert (sound.status, sound.out.splitlines()[-1][-5:]) == (0, "sound"), sound.out
    listed = (where / "MD5SUMS").read_text().splitlines()[0].partition("  ")[2]
    (where / listed).write_bytes((where / listed).read_bytes() + b"x")
    (where / "stray").write_text("")
    outcome = bertdata("verify-md5", where)
    assert outcome.status == 1
    assert f"{where / listed}: wrong size: found " in outcome.out
    assert f"{where / 'stray'}: extra; the manifest does not list it" in outcome.out
    (where / listed).unlink()
    assert f"{where / listed}: missing" in bertdata("verify-md5", where).out.splitlines()


@pytest.mark.parametrize("directory", ["extracted", "results", "shards"])
def test_every_directory_misses_its_manifest(bertdata: Program, place: Path, directory: str) -> None:
    where = place / directory
    (where / "manifest.json").unlink()
    outcome = bertdata("verify-md5", where)
    assert (outcome.status, outcome.out.splitlines()[0]) == (1, f"{where}/manifest.json: missing")


@pytest.mark.parametrize("directory", ["extracted", "results", "shards"])
def test_an_edited_manifest_is_a_fault(bertdata: Program, place: Path, directory: str) -> None:
    edit(place / directory / "manifest.json", lambda value: value["totals"].update(bytes=7))
    outcome = bertdata("verify-md5", place / directory)
    assert outcome.status == 1
    assert "manifest.json: edited; it is not what its own entries make" in outcome.out
    outcome = chain(bertdata, place, place / "results", place / "extracted")
    assert outcome.status == 1
    if directory != "shards":  # it is not the one that is cited any more
        assert (
            f"{place / directory}: no source; nothing in the chain of {place}/shards cites it" in outcome.out
        )


@pytest.mark.parametrize("name", ["parts.json", "articles.json"])
def test_an_edited_copy_is_a_fault(bertdata: Program, place: Path, name: str) -> None:
    path = place / "shards" / "sources" / name
    edit(path, lambda value: value["files"][0].update(md5="0" * 32))
    outcome = chain(bertdata, place)
    assert outcome.status == 1
    assert f"{path}: wrong md5: found {md5(path)}, expected " in outcome.out
    assert f"  the chain ends here: sources/{name} is not the manifest that is cited" in outcome.out


def relink(place: Path) -> None:
    """Make every digest fit again, as one who covers his traces would."""
    copies = place / "shards" / "sources"

    def cite(key: str, copy: str) -> Callable[[dict], None]:
        return lambda value: value.update({key: md5(copies / copy)})

    edit(copies / "parts.json", cite("articles_manifest", "articles.json"))
    edit(place / "shards" / "manifest.json", cite("parts_manifest", "parts.json"))


@pytest.mark.parametrize(
    ("copy", "change", "words"),
    [
        ("parts.json", lambda value: value["files"][-1].update(md5="0" * 32), "not of these parts: found "),
        ("parts.json", lambda value: value["files"][-1].update(bytes=7), "not of these parts: found "),
        ("parts.json", lambda value: value["files"].pop(), ", expected not listed; as sources/parts.json"),
        ("articles.json", lambda value: value["files"][0].update(md5="0" * 32), "not of these articles: "),
        ("articles.json", lambda value: value["files"][0].update(name="ZZ/wiki_99"), ", expected not listed"),
        (
            "parts.json",
            lambda value: value["punkt"].update(variant="current"),
            "manifest.json: punkt: found ",
        ),
        ("parts.json", lambda value: value.update(kind="articles"), "'settings/"),
    ],
    ids=["part", "size of a part", "part left out", "article", "article renamed", "splitter", "kind"],
)
def test_an_input_that_upstream_does_not_list_is_a_fault(
    bertdata: Program, place: Path, copy: str, change: Callable[[dict], None], words: str
) -> None:
    edit(place / "shards" / "sources" / copy, change)
    relink(place)
    outcome = chain(bertdata, place)
    assert outcome.status == 1
    if words != "'settings/":
        assert words in outcome.out
    else:
        assert "sources/parts.json: " in outcome.err


def test_parts_of_an_earlier_version_that_say_current_are_read(bertdata: Program, place: Path) -> None:
    manifest = place / "results" / "manifest.json"
    edit(manifest, lambda value: value["punkt"].update(variant="current"))
    sums = parse_text_manifest(manifest.read_bytes(), "manifest.json").md5sums()
    (place / "results" / "MD5SUMS").write_bytes(sums)
    shutil.rmtree(place / "shards")
    assert make_shards(place) == 0
    outcome = chain(bertdata, place, place / "results")
    assert outcome.status == 0, outcome.out
    assert "  <- parts: text, mlperf, Punkt 3.10.0, 3 files" in outcome.out


def test_a_missing_copy_of_the_articles_ends_the_chain_plainly(bertdata: Program, place: Path) -> None:
    (place / "shards" / "sources" / "articles.json").unlink()
    outcome = chain(bertdata, place)
    assert outcome.status == 0
    digest = md5(place / "extracted" / "manifest.json")
    assert (
        f"  the chain ends here: the manifest of the articles, md5 {digest}, is not at hand "
        "(sources/articles.json is missing)"
    ) in outcome.out.splitlines()
    assert "  <- dump: " in chain(bertdata, place, place / "extracted").out


def test_a_missing_copy_of_the_parts_manifest_is_a_fault(bertdata: Program, place: Path) -> None:
    (place / "shards" / "sources" / "parts.json").unlink()
    outcome = chain(bertdata, place)
    assert outcome.status == 1
    assert f"{place}/shards/sources/parts.json: missing" in outcome.out.splitlines()


def test_a_source_is_verified_and_must_be_cited(bertdata: Program, place: Path, tmp_path: Path) -> None:
    (part,) = (place / "results").glob("part-*")
    part.write_bytes(part.read_bytes().replace(b"a", b"b", 1))
    outcome = chain(bertdata, place, place / "results")
    assert outcome.status == 1
    assert f"{part}: wrong md5: found {md5(part)}, expected " in outcome.out
    other = Path(shutil.copy(GOLDEN / "vocab.txt", tmp_path / "dump.xml"))
    outcome = chain(bertdata, place, other)
    assert outcome.status == 1
    assert f"{other}: wrong size: found " in outcome.out
    chain(bertdata, place, tmp_path / "nowhere").assert_one_error(2, "nowhere: no such file or directory")


def test_parts_without_a_manifest_end_the_chain_plainly(bertdata: Program, place: Path) -> None:
    (place / "results" / "manifest.json").unlink()
    shutil.rmtree(place / "shards")
    assert make_shards(place) == 0
    assert files_below(place / "shards" / "sources") == []
    manifest = json.loads((place / "shards" / "manifest.json").read_text())
    assert (manifest["parts_manifest"], manifest["settings"]["text"]) == (None, {"punkt": None})
    outcome = chain(bertdata, place)
    assert outcome.status == 0
    assert outcome.out.splitlines()[1] == (
        "  the chain ends here: no manifest was beside the parts when they were read"
    )


def test_a_dataset_made_again_takes_the_manifest_that_is_there_now(bertdata: Program, place: Path) -> None:
    expected = contents(place / "shards")
    kept = (place / "results" / "manifest.json").read_bytes()
    (place / "results" / "manifest.json").unlink()
    assert make_shards(place) == 0
    assert files_below(place / "shards" / "sources") == []
    (place / "results" / "manifest.json").write_bytes(kept)
    assert make_shards(place) == 0
    assert contents(place / "shards") == expected


def test_a_part_that_is_not_what_its_manifest_lists_is_an_error(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (part,) = (place / "results").glob("part-*")
    shutil.rmtree(place / "shards")
    whole = part.read_bytes()
    for changed, found in ((whole + b"x\n", "bytes, but the"), (whole.replace(b"a", b"b", 1), ", but the")):
        part.write_bytes(changed)
        capsys.readouterr()
        assert make_shards(place) == 1
        assert f"{found} manifest.json beside it lists " in capsys.readouterr().err
    part.write_bytes(whole)
    assert make_shards(place) == 0


def test_some_of_the_parts_have_a_chain_too(bertdata: Program, place: Path, capsys) -> None:
    shutil.rmtree(place / "shards")
    (place / "results" / "part-of-my-own").write_text("A sentence.\n\nAnother.\n")
    parts = sorted((place / "results").glob("part-0*"))
    words = ("--output", place / "shards", "--vocab", GOLDEN / "vocab.txt", *SMALL)
    assert bertdata("create", *parts[:1], *words).status == 0
    assert "  <- dump: " in chain(bertdata, place).out
    shutil.rmtree(place / "shards")
    assert bertdata("create", *parts, place / "results" / "part-of-my-own", *words).status == 0
    assert "the chain ends here: no manifest was beside the parts" in chain(bertdata, place).out


def test_the_report_as_json_has_the_chain(bertdata: Program, made: Path) -> None:
    report = json.loads(bertdata("verify-md5", made / "shards", "--chain", "--json").out)
    assert (report["sound"], len(report["chain"])) == (True, 4)


def test_wrong_usage_is_refused(bertdata: Program, made: Path) -> None:
    bertdata("verify-md5", made / "shards", "--source", made).assert_one_error(
        2, "--source goes with --chain"
    )
    bertdata("verify-md5", made / "shards", "--chain", "--table=mlperf-v1.0").assert_one_error(2, "exclude")
    bertdata("verify-md5", made / "shards" / "MD5SUMS", "--chain").assert_one_error(1, "has no chain")


def test_both_phases_of_a_recipe_have_their_chain(bertdata: Program, place: Path) -> None:
    shutil.rmtree(place / "shards")
    parts = sorted((place / "results").glob("part-*"))
    words = ("--vocab", GOLDEN / "vocab.txt", "--recipe", "habana", "--dupe-factor=1", "--workers=1")
    assert bertdata("create", *parts, "--output", place / "shards", *words).status == 0
    outcome = chain(bertdata, place, place / "results")
    assert outcome.status == 0, outcome.out
    assert outcome.out.count("  <- dump: ") == 2
    path = place / "shards" / "phase2" / "sources" / "parts.json"
    edit(path, lambda value: value["totals"].update(files=7))
    outcome = chain(bertdata, place)
    assert outcome.status == 1
    assert f"{path}: wrong md5: " in outcome.out


def test_only_the_datasets_below_a_directory_are_read(bertdata: Program, made: Path) -> None:
    outcome = bertdata("stats", made, "--json")
    assert outcome.status == 0, outcome.err
    assert [one["path"] for one in json.loads(outcome.out)["datasets"]] == [str(made / "shards")]
    sound = bertdata("verify-md5", made)
    assert (sound.status, sound.out) == (0, f"{made}: 5 files right, sound\n")


def test_only_a_dataset_is_read_for_training_or_statistics(bertdata: Program, made: Path) -> None:
    for directory, kind in (("results", "text"), ("extracted", "articles")):
        bertdata("stats", made / directory).assert_one_error(
            2, f"is the manifest of a directory of {kind}, expected one of a dataset"
        )
