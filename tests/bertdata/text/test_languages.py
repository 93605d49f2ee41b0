"""The language of a run: settings, manifests, chain, commands."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import bertdata as package
from beam_pipelines.options import make_text_settings, parse_flags
from beam_pipelines.stages.text_stage import plan_text_stage
from bertdata.dataset.provenance import NO_PROVENANCE, find_provenance
from bertdata.errors import SettingsError
from bertdata.io.punkt_assets import PUNKT_ASSETS
from bertdata.text.languages import find_language, list_language_notes
from bertdata.text.manifest import parse_text_manifest
from bertdata.text.settings import SegmentSettings
from tests.support.commands import SMALL, Program
from tests.support.paths import GOLDEN

ENGLISH_SETTINGS = {"recipe": "mlperf", "eval_articles": 0, "block_size": 26.92}


def text_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(text, encoding="utf-8")
    return path


def segmented(bertdata: Program, book: Path, *flags: object) -> tuple[list[str], dict[str, Any], str]:
    """The sentences of a book, the manifest, the output."""
    out = book.parent / "out"
    given = ("--input-kind=text", "--output", out, "--eval-articles=0", "--workers=1")
    done = bertdata("segment", book, *given, *flags)
    assert done.status == 0, done.err
    text = (out / "part-00000-of-00500").read_text(encoding="utf-8")
    return (
        [line for line in text.split("\n") if line],
        json.loads((out / "manifest.json").read_text()),
        done.out,
    )


def test_the_kinds_of_languages() -> None:
    assert [find_language(code).splitting for code in ("de", "zh", "ko", "th", "uk")] == [
        "punkt", "marks", "marks", "lines", "lines",
    ]  # fmt: skip
    assert [find_language(name).code for name in ("German", "AR", "nb", "nn", "norwegian")] == [
        "de",
        "ar",
        "no",
        "no",
        "no",
    ]
    assert [find_language(code).between for code in ("de", "ko", "zh", "ja", "th")] == [" ", " ", "", "", ""]
    assert len({find_language(name).tables for name in PUNKT_ASSETS}) == 19


@pytest.mark.parametrize("name", ["xx", "deu", "de-AT", "klingon", ""])
def test_an_unknown_language_is_one_line_that_names_the_known(name: str, bertdata: Program, tmp_path) -> None:
    book = text_of(tmp_path, "Ja.\n")
    done = bertdata("segment", book, "--input-kind=text", "--output", tmp_path / "out", f"--language={name}")
    done.assert_one_error(2, f"language is {name!r}", "ISO 639-1", "cs, da, de, el, en, es", "ja, ko", "zh")
    assert not (tmp_path / "out").exists()


def test_german_by_its_own_tables(german: Path, bertdata: Program, tmp_path: Path) -> None:
    book = text_of(tmp_path, "Siehe Nr. 7 usw. Das ist bzw. war gut. Am 3. Oktober war es.\nJa!\n")
    sentences, manifest, out = segmented(bertdata, book, "--language", "de", "--punkt=3.10.4")
    assert sentences == ["Siehe Nr. 7 usw.", "Das ist bzw. war gut.", "Am 3. Oktober war es.", "Ja!"]
    assert manifest["settings"] == {**ENGLISH_SETTINGS, "language": "de", "between": " "}
    assert manifest["punkt"] == {
        "variant": "3.10.4",
        "tables": {
            name: hashlib.md5((german / name).read_bytes()).hexdigest() for name in sorted(PUNKT_FILES)
        },
    }
    assert "each line" not in out


PUNKT_FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")


def test_english_says_nothing_of_its_language(punkt_tables: None, bertdata: Program, tmp_path: Path) -> None:
    book = text_of(tmp_path, "Dr. No came. He left.\n")
    for flags in (
        (),
        ("--language=en",),
        ("--language=english",),
    ):  # the later ones find the first one's work
        sentences, manifest, _ = segmented(bertdata, book, *flags)
        assert sentences == ["Dr. No came.", "He left."]
        assert manifest["settings"] == ENGLISH_SETTINGS


def test_chinese_by_marks_and_thai_by_lines(bertdata: Program, tmp_path: Path) -> None:
    for code, text, expected in (
        ("zh", "他说：“好。”走了！\n", ["他说：“好。”", "走了！"]),
        ("th", "ฝนตก. ไป!\nมา\n", ["ฝนตก. ไป!", "มา"]),
    ):
        (tmp_path / code).mkdir()
        sentences, manifest, out = segmented(bertdata, text_of(tmp_path / code, text), "--language", code)
        assert sentences == expected
        assert manifest["settings"] == {**ENGLISH_SETTINGS, "language": code, "between": ""}
        assert manifest["punkt"] is None
        assert out.startswith(f"language {code}: Punkt has no tables of it, so each line") == (code == "th")
    assert list_language_notes("th")
    assert not list_language_notes("zh")


def test_another_language_is_another_directory(bertdata: Program, tmp_path: Path) -> None:
    book = text_of(tmp_path, "好。\n")
    segmented(bertdata, book, "--language=zh")
    flags = ("--input-kind=text", "--output", tmp_path / "out", "--eval-articles=0", "--language=ja")
    bertdata("segment", book, *flags).assert_one_error(2, "language 'zh', now 'ja'")


def test_abbreviations_are_in_the_manifest_by_md5(german: Path, bertdata: Program, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Abb.\n")
    book = text_of(tmp_path, "Siehe Abb. 3 an. Ja.\n")
    flags = ("--language=de", "--abbreviations", own)
    sentences, manifest, _ = segmented(bertdata, book, *flags)
    assert sentences == ["Siehe Abb. 3 an.", "Ja."]
    md5 = hashlib.md5(own.read_bytes()).hexdigest()
    assert manifest["settings"]["abbreviations"] == md5
    assert str(own) not in json.dumps(manifest)
    given = ("--input-kind=text", "--output", tmp_path / "out", "--eval-articles=0")
    bertdata("segment", book, *given, "--language=de").assert_one_error(2, f"abbreviations '{md5}', now None")
    dry = bertdata("segment", book, *given, *flags, "--dry-run")
    assert f"language de, between  , abbreviations {md5}" in dry.out
    own.write_text("(Abb.\n")
    bertdata("segment", book, *given, *flags).assert_one_error(1, "own.txt: line 1: found '(Abb.'")
    bertdata(
        "segment", book, *given, "--language=zh", "--abbreviations", german / "abbrev_types.txt"
    ).assert_one_error(2, "abbreviations go with a language that has Punkt tables, not with zh")


def test_the_recipe_nvidia_needs_sentence_ends_and_names_its_shards_by_language() -> None:
    with pytest.raises(SettingsError, match="language is 'th'.*choose the recipe mlperf"):
        SegmentSettings(recipe="nvidia", language="th")
    assert SegmentSettings(recipe="nvidia", language="german").prefix == "wikicorpus_de"
    assert SegmentSettings(recipe="nvidia", language="zh", prefix="books").prefix == "books"
    assert SegmentSettings(recipe="nvidia").prefix == "wikicorpus_en"


def test_a_dataset_and_its_chain_know_the_language(german: Path, bertdata: Program, tmp_path: Path) -> None:
    book = text_of(tmp_path, "Das ist ein Haus. Es ist alt.\n" * 5)
    own = tmp_path / "own.txt"
    own.write_text("Abb.\n")
    segmented(bertdata, book, "--language=de", "--abbreviations", own)
    part, shards = tmp_path / "out" / "part-00000-of-00500", tmp_path / "shards"
    made = bertdata("create", part, "--output", shards, "--vocab", GOLDEN / "vocab.txt", *SMALL)
    assert made.status == 0, made.err
    manifest = json.loads((shards / "manifest.json").read_text())
    text = manifest["settings"]["text"]
    assert text["language"] == "de"
    assert text["abbreviations"] == hashlib.md5(own.read_bytes()).hexdigest()
    chain = bertdata("verify-md5", shards, "--chain")
    assert chain.status == 0, chain.out
    assert "<- parts: text, mlperf, Punkt 3.4.5 of de, 3 files" in chain.out
    text["language"] = "fr"
    (shards / "manifest.json").write_text(json.dumps(manifest))
    broken = bertdata("verify-md5", shards, "--chain")
    assert broken.status == 1
    assert "language: found fr, expected de" in broken.out


def test_the_parts_tell_what_stands_between_sentences(bertdata: Program, tmp_path: Path) -> None:
    _, manifest, _ = segmented(bertdata, text_of(tmp_path, "好。坏。\n"), "--language=zh")
    provenance = find_provenance([str(tmp_path / "out" / "part-00000-of-00500")])
    assert (provenance.between, NO_PROVENANCE.between) == ("", None)
    del manifest["settings"]["between"]
    assert parse_text_manifest(json.dumps(manifest).encode(), "manifest.json").between == " "


def test_beams_text_stage_takes_the_language(german: Path, tmp_path: Path) -> None:
    book = text_of(tmp_path, "Siehe Nr. 7.\n")
    own = tmp_path / "own.txt"
    own.write_text("Abb.\n")
    words = [
        "--input",
        str(book),
        "--input-kind",
        "text",
        "--output",
        "o",
        "--vocab",
        "v",
        "--language",
        "de",
    ]
    flags, _ = parse_flags([*words, "--abbreviations", str(own)])
    settings = make_text_settings(flags, None)
    stage = plan_text_stage([str(book)], str(tmp_path / "text"), settings, None, kinds=["text"])
    assert stage.load_splitter.language == "de"
    segmented = stage.load_splitter().segment_lines(b"Siehe Abb. 3. Die Nr. 7.\n")
    assert segmented.decode() == "Siehe Abb. 3.\nDie Nr. 7.\n"
    assert stage.text.commit.terms["abbreviations"] == hashlib.md5(own.read_bytes()).hexdigest()


def test_the_python_face_takes_language_and_abbreviations(german: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Abb.\n")
    book = text_of(tmp_path, "Siehe Abb. 3 an. Ja.\n")
    counts = package.segment(
        book,
        tmp_path / "out",
        input_kind="text",
        eval_articles=0,
        language="de",
        abbreviations=own,
        workers=1,
    )
    assert counts.sentences == 2


def test_fetch_takes_a_language(german: Path, bertdata: Program) -> None:
    done = bertdata("fetch", "punkt", "--language", "de")
    assert done.out.count(str(german)) == 4
    bertdata("fetch", "punkt", "--language=zh").assert_one_error(2, "no tables of language zh")
    bertdata("fetch", "vocab", "--language=de").assert_one_error(2, "--language goes with punkt")
