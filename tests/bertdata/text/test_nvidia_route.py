"""NVIDIA's and Habana's route from a dump: articles of the extractor that their scripts pin, then shards."""

import bz2
import json
import lzma
from pathlib import Path

import pytest

from beam_pipelines.prepare import main as prepare
from bertdata.errors import SettingsError
from bertdata.steps.extract import extract
from bertdata.steps.segment import segment
from bertdata.text.load_splitter import LoadSplitter
from bertdata.wiki.settings import ExtractSettings
from tests.support.commands import Program, contents
from tests.support.dumps import files
from tests.support.original_sharding import format_articles, shards_of
from tests.support.paths import DUMP
from tests.support.pipelines import SHARDS, SMALL, commands, made_datasets, words
from tests.support.wiki_kit import read_pinned

DAY = "2020-01-01"
"""The day on which the kit's articles were extracted."""

REAL_DUMPS = ["allerwiki-20200101", "smallwiki", "enwiki-p10-p30302-shortened"]


def dump_of(kit: Path, name: str, place: Path) -> Path:
    """A real dump whose articles the kit has, compressed."""
    if name == "allerwiki-20200101":
        dump = place / "allerwiki.xml.bz2"
        dump.write_bytes(bz2.compress(DUMP.read_bytes()))
        return dump
    return kit / "dump" / {"smallwiki": "ltgwiki-smallwiki.xml.bz2"}.get(name, f"{name}.xml.bz2")


@pytest.mark.parametrize("recipe", ["nvidia", "habana"])
@pytest.mark.parametrize("name", REAL_DUMPS)
def test_the_recipe_extracts_what_the_pinned_program_wrote(
    kit: Path, tmp_path: Path, name: str, recipe: str
) -> None:
    extract(dump_of(kit, name, tmp_path), tmp_path / "made", recipe=recipe, date=DAY)
    assert b"".join(files(tmp_path / "made").values()) == read_pinned(kit, name, templates=False)


@pytest.mark.usefixtures("punkt_tables")
@pytest.mark.parametrize("name", REAL_DUMPS)
def test_shards_from_the_dump_are_those_of_the_pinned_programs_articles(
    kit: Path, tmp_path: Path, name: str
) -> None:
    extract(dump_of(kit, name, tmp_path), tmp_path / "extracted", recipe="nvidia", date=DAY)
    shards = {"training_shards": 3, "test_shards": 2}
    segment(tmp_path / "extracted", tmp_path / "text", recipe="nvidia", **shards)
    punkt = LoadSplitter("3.4.5", "python", None)()

    def split(article: str) -> list[str]:
        return punkt.segment_lines(article.encode(), keeps_indent=True).decode().rstrip("\n").split("\n")

    articles = format_articles(read_pinned(kit, name, templates=False))
    expected = shards_of([articles], split, 3, 2, 0.1)
    numbered = [*(f"training_{n}" for n in range(3)), *(f"test_{n}" for n in range(2))]
    made = [(tmp_path / "text" / f"wikicorpus_en_{name}.txt").read_bytes() for name in numbered]
    assert made == expected


@pytest.mark.usefixtures("punkt_tables")
def test_one_beam_command_makes_the_shards_of_the_pinned_programs_articles(
    kit: Path, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    create = ("--recipe", "nvidia", "--phase", "1", *SMALL)
    pinned = tmp_path / "pinned" / "AA"
    pinned.mkdir(parents=True)
    for file in (kit / "wiki" / "pinned" / "allerwiki-20200101" / "AA").iterdir():
        (pinned / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
    row = ("--recipe", "nvidia", *SHARDS)
    expected = commands(pinned.parent, small_vocabulary_file, tmp_path / "row", row, create)
    given = words([DUMP], small_vocabulary_file, tmp_path / "beam", "--input-kind", "dump", "--date", DAY)
    assert prepare([*given, *create, *SHARDS]) == 0
    made = contents(tmp_path / "beam.text")
    texts = {name: data for name, data in made.items() if name.startswith("wikicorpus")}
    assert texts == {name: data for name, data in expected[0].items() if name.startswith("wikicorpus")}
    shards = {name: data for name, data in made_datasets(tmp_path / "beam").items() if name.endswith("hdf5")}
    assert len(shards) == 5
    assert shards == {name: data for name, data in expected[1].items() if name.endswith("hdf5")}


def test_version_2_75_is_another_name_of_mlperfs_extractor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ExtractSettings(extractor="2.75") == ExtractSettings(extractor="mlperf")
    program = Program(capsys)
    for flags, version in (
        (("--extractor", "2.75"), "3162bb6c3c9ebd2d15be507aa11d6fa818a454ac"),
        (("--recipe", "nvidia"), "3162bb6c3c9ebd2d15be507aa11d6fa818a454ac"),
        (("--recipe", "google"), "3.1.0"),
        (("--recipe", "nvidia", "--extractor", "3.1.0"), "3.1.0"),
        ((), "3.1.0"),
    ):
        place = tmp_path / "-".join(flags).replace(".", "")
        assert program("extract", DUMP, "--output", place / "made", *flags).status == 0
        manifest = json.loads((place / "made" / "manifest.json").read_text())
        assert manifest["extractor"]["version"] == version
    with pytest.raises(SettingsError, match=r"expected one of 3\.1\.0, mlperf, 2\.75"):
        ExtractSettings(extractor="2.76")  # type: ignore[arg-type]
