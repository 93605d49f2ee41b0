"""``--language-field``: a field of each record chooses the splitter of its sentences."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import bertdata as package
from bertdata.errors import AssetError, SettingsError
from bertdata.io.punkt_assets import PUNKT_ASSETS
from bertdata.sources import line_pieces, piece
from bertdata.sources.settings import RecordSettings
from bertdata.text import load_splitter
from bertdata.text.languages import find_tagged_language
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.settings import SelectionSettings
from tests.support.commands import Program, contents

RECORDS = [
    {"text": "Siehe Nr. 7 usw. Das ist bzw. war gut.", "lang": "de", "id": "a"},
    {"text": "Dr. No came. He left.", "lang": "en", "id": "b"},
    {"text": "他说：“好。”走了！", "lang": "zh-Hans", "id": "c"},
    {"text": "ฝนตก. ไป!\nมา", "lang": "th", "id": "d"},
    {"text": "Am 3. Oktober war es. Ja!", "lang": "DE_at", "id": "e"},
]
DOCUMENTS = [
    "Siehe Nr. 7 usw.\nDas ist bzw. war gut.\n\n",
    "Dr. No came.\nHe left.\n\n",
    "他说：“好。”\n走了！\n\n",
    "ฝนตก. ไป!\nมา\n\n",
    "Am 3. Oktober war es.\nJa!\n\n",
]
"""The parts' text of RECORDS: by NLTK's splitters for German and English, by end marks for Chinese, and by
lines for Thai, as tests of these splitters have it.
"""


def write_records(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def no_download(german: Path, nltk_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of English and German are there, and those of other languages cannot be downloaded."""
    monkeypatch.setenv("NLTK_DATA", os.pathsep.join([str(nltk_data), str(german.parents[2])]))

    def refuse() -> None:
        raise AssetError("no network in tests")

    monkeypatch.setattr(load_splitter, "obtain_every_language", refuse)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_records(tmp_path / "corpus.jsonl", RECORDS)


FLAGS = ("--text-field=text", "--language-field=lang", "--id-field=id", "--punkt=3.10.4", "--workers=1")


def part_of(output: Path) -> str:
    return (output / "part-00000.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", ["python", "native"])
def test_each_record_is_split_by_the_splitter_of_its_language(
    engine: str, corpus: Path, bertdata: Program, tmp_path: Path
) -> None:
    done = bertdata("segment", corpus, "--output", tmp_path / "out", f"--engine={engine}", *FLAGS)
    assert done.status == 0, done.err
    assert part_of(tmp_path / "out") == "".join(DOCUMENTS)


def test_records_of_languages_without_a_splitter_are_told_at_the_end(
    bertdata: Program, tmp_path: Path
) -> None:
    arabic = {"text": "ذهب. عاد.", "lang": "Arabic", "id": "f"}
    corpus = write_records(tmp_path / "corpus.jsonl", [*RECORDS, arabic, arabic])
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS)
    assert part_of(tmp_path / "out") == "".join(DOCUMENTS) + "ذهب. عاد.\n\n" * 2
    note = "3 records of languages without a sentence splitter (ar: 2, th: 1): each line is taken as one "
    assert done.err.count(note) == 1
    lines = bertdata("segment", corpus, "--output", tmp_path / "lines", "--sentences=lines", *FLAGS)
    assert "without a sentence splitter" not in lines.err


def test_any_number_of_workers_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Workers are other processes, which do not know the tables of these tests. So no record needs tables.
    records = [
        {"text": "좋다. 예!", "lang": "ko"},
        *(one for one in RECORDS if one["lang"] in ("zh-Hans", "th")),
    ]
    corpus = write_records(tmp_path / "corpus.jsonl", records * 3)
    for module in (line_pieces, piece):
        monkeypatch.setattr(module, "PIECE_BYTES", 80)
    for workers in (1, 2):
        package.segment(
            corpus,
            tmp_path / str(workers),
            text_field="text",
            id_field="id",
            language_field="lang",
            workers=workers,
        )
    assert part_of(tmp_path / "1") == ("좋다.\n예!\n\n" + DOCUMENTS[2] + DOCUMENTS[3]) * 3
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_one_run_removes_the_duplicates_of_all_languages(
    german: Path, bertdata: Program, tmp_path: Path
) -> None:
    corpus = write_records(tmp_path / "corpus.jsonl", [*RECORDS, RECORDS[2], RECORDS[0]])
    done = bertdata("segment", corpus, "--output", tmp_path / "out", "--dedup=exact", *FLAGS)
    assert done.status == 0, done.err
    assert part_of(tmp_path / "out") == "".join(DOCUMENTS)
    removed = [json.loads(line) for line in (tmp_path / "out/removed.jsonl").read_text().splitlines()]
    assert [(one["record"], one["reason"]) for one in removed] == [(6, "duplicate"), (7, "duplicate")]


def test_the_manifest_names_the_field_and_the_tables_of_every_language(
    corpus: Path, german: Path, bertdata: Program, tmp_path: Path
) -> None:
    bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["settings"]["language_field"] == "lang"
    assert "language" not in manifest["settings"]
    tables = manifest["punkt"]["tables"]
    assert {name.partition("/")[0] for name in tables} == set(PUNKT_ASSETS)
    for name in ("abbrev_types.txt", "ortho_context.tab"):
        assert tables[f"german/{name}"] == hashlib.md5((german / name).read_bytes()).hexdigest()
    bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, "--language=en").assert_one_error(
        2, "language None, now 'en'"
    )


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({"text": "Da.", "id": "x"}, "its field 'lang' is missing, null or empty"),
        ({"text": "Da.", "id": "x", "lang": None}, "its field 'lang' is missing, null or empty"),
        ({"text": "Da.", "id": "x", "lang": ""}, "its field 'lang' is missing, null or empty"),
        (
            {"text": "Da.", "id": "x", "lang": "klingon"},
            "its language 'klingon' is unknown, expected an ISO 639-1 code or English name, such as ar",
        ),
    ],
)
def test_a_record_of_no_known_language_is_an_error_or_counted(
    record: dict[str, Any], fault: str, german: Path, bertdata: Program, tmp_path: Path
) -> None:
    corpus = write_records(tmp_path / "corpus.jsonl", [RECORDS[0], record, RECORDS[1]])
    failed = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS)
    failed.assert_one_error(1, f"{corpus}: record 2: {fault}", "(id x)", "--skip-bad-records")
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, "--skip-bad-records")
    assert "1 malformed left out" in done.out
    assert part_of(tmp_path / "out") == "".join(DOCUMENTS[:2])
    (removed,) = map(json.loads, (tmp_path / "out/removed.jsonl").read_text().splitlines())
    assert (removed["record"], removed["id"], removed["reason"]) == (2, "x", "malformed")
    assert fault in removed["fault"]


def test_language_is_that_of_records_without_the_field(
    german: Path, bertdata: Program, tmp_path: Path
) -> None:
    records = [{"text": RECORDS[0]["text"]}, {"text": RECORDS[4]["text"], "lang": None}, RECORDS[1]]
    corpus = write_records(tmp_path / "corpus.jsonl", records)
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, "--language=german")
    assert done.status == 0, done.err
    assert part_of(tmp_path / "out") == DOCUMENTS[0] + DOCUMENTS[4] + DOCUMENTS[1]
    assert json.loads((tmp_path / "out/manifest.json").read_text())["settings"]["language"] == "de"


def test_a_file_without_the_field_is_told_if_a_language_is_taken_for_it(
    corpus: Path, bertdata: Program, tmp_path: Path
) -> None:
    without = write_records(tmp_path / "without.jsonl", [{"text": "Das ist bzw. war gut. Ja."}])
    flags = (*FLAGS, "--language=de", "--keep-languages=de")
    done = bertdata("segment", corpus, without, "--output", tmp_path / "out", *flags)
    assert done.status == 0, done.err
    told = done.out + done.err
    assert f"{without}: its first records have no field 'lang'; they are taken to be of --language de" in told
    assert "corpus.jsonl: its first records" not in told


def test_an_unknown_language_is_not_replaced_by_the_default(
    german: Path, bertdata: Program, tmp_path: Path
) -> None:
    corpus = write_records(tmp_path / "corpus.jsonl", [{**RECORDS[0], "lang": "xx"}])
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, "--language=de")
    done.assert_one_error(1, "record 1: its language 'xx' is unknown")


def test_keep_languages_leaves_out_the_others_and_counts_them(
    corpus: Path, bertdata: Program, tmp_path: Path
) -> None:
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, "--keep-languages=german, zh")
    assert done.status == 0, done.err
    assert "2 other language left out" in done.out
    assert part_of(tmp_path / "out") == DOCUMENTS[0] + DOCUMENTS[2] + DOCUMENTS[4]
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["settings"]["keep_languages"] == ["de", "zh"]
    assert {name.partition("/")[0] for name in manifest["punkt"]["tables"]} == {"german"}
    assert manifest["totals"]["other_language"] == 2


def test_a_duplicate_is_kept_if_only_a_record_of_another_language_came_before(
    german: Path, bertdata: Program, tmp_path: Path
) -> None:
    records = [{**RECORDS[1], "lang": "fr"}, RECORDS[1]]
    corpus = write_records(tmp_path / "corpus.jsonl", records)
    flags = ("--keep-languages=en", "--dedup=exact")
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, *flags)
    assert done.status == 0, done.err
    assert part_of(tmp_path / "out") == DOCUMENTS[1]


def test_a_vocabulary_is_trained_on_the_languages_to_keep(bertdata: Program, tmp_path: Path) -> None:
    records = [{"text": "abc " * 9, "lang": "en"}, {"text": "xyz " * 9, "lang": "pl"}]
    corpus = write_records(tmp_path / "corpus.jsonl", records)
    flags = ("--size=40", "--input-kind=jsonl", "--text-field=text", "--language-field=lang")
    output = tmp_path / "vocab.txt"
    done = bertdata("train-vocab", corpus, "--output", output, *flags, "--keep-languages=en")
    assert done.status == 0, done.err
    tokens = output.read_text().split()
    assert "abc" in tokens
    assert "x" not in tokens


def test_a_directory_of_tables_has_a_folder_for_each_language(
    corpus: Path, german: Path, bertdata: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NLTK_DATA")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    flags = ("--keep-languages=de,zh", "--punkt-tables", german.parent)
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, *flags)
    assert done.status == 0, done.err
    assert part_of(tmp_path / "out") == DOCUMENTS[0] + DOCUMENTS[2] + DOCUMENTS[4]


def test_a_missing_table_is_an_error_when_a_record_needs_it(
    corpus: Path, german: Path, bertdata: Program, tmp_path: Path
) -> None:
    (german / "ortho_context.tab").rename(tmp_path / "moved")
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, "--punkt-tables", german.parent)
    done.assert_one_error(2, "german/ortho_context.tab: no such file")


def test_records_in_very_many_languages_read_the_tables_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = []
    find = load_splitter.find_punkt_tables

    def count(directory: str | None, language: str) -> Any:
        read.append(language)
        return find(directory, language)

    monkeypatch.setattr(load_splitter, "find_punkt_tables", count)
    load_splitter._load_splitter.cache_clear()
    load = load_splitter.LoadSplitter("3.4.5")
    others = "af ar az be bg bn br bs ca cy eo eu fa ga gl gu he hi hr hu hy id is ka kk km kn ky lo lt lv"
    for _ in range(2):
        for code in ("de", *others.split()):
            load(code)
    assert read == ["german"]


def test_no_table_is_fetched_if_no_text_is_split_into_sentences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("fetched")

    monkeypatch.setattr(load_splitter, "obtain_every_language", refuse)
    monkeypatch.setattr(load_splitter, "find_punkt_tables", refuse)
    records = RecordSettings(language_field="lang")
    for keep in (None, "de"):
        settings = PartSettings(
            sentences="lines", records=records, selection=SelectionSettings(keep_languages=keep)
        )
        load_splitter.fetch_tables(settings, None)


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(SettingsError, match="keep_languages goes with language_field"):
        PartSettings(selection=SelectionSettings(keep_languages="de"))
    with pytest.raises(
        SettingsError, match="keep_languages has 'qq', expected an ISO 639-1 code or English name"
    ):
        SelectionSettings(keep_languages="de,qq")


def test_abbreviations_are_of_one_language(corpus: Path, bertdata: Program, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Abb.\n")
    done = bertdata("segment", corpus, "--output", tmp_path / "out", *FLAGS, "--abbreviations", own)
    done.assert_one_error(2, "--abbreviations goes with a single language, not with --language-field")


def test_a_tag_names_a_language_by_code_or_name_with_a_region_or_script() -> None:
    tags = ("de", " De-AT ", "zh_Hant", "german", "nb", "und", "", "en-US-x", "Arabic", "Scottish Gaelic")
    found = [find_tagged_language(tag) for tag in tags]
    assert found == ["de", "de", "zh", "de", "no", None, None, "en", "ar", "gd"]


def test_keep_languages_takes_the_names_that_a_field_may_hold() -> None:
    assert SelectionSettings(keep_languages="zh-Hans, ARABIC,de,German").keep_languages == "ar,de,zh"


def test_a_dataset_and_its_chain_know_the_language_field(
    corpus: Path, bertdata: Program, tmp_path: Path
) -> None:
    package.segment(
        corpus, tmp_path / "parts", text_field="text", language_field="lang", id_field="id", workers=1
    )
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nno\ncame\nhe\nleft\n")
    done = bertdata("create", tmp_path / "parts", "--output", tmp_path / "data", "--vocab", vocabulary)
    assert done.status == 0, done.err
    manifest = json.loads((tmp_path / "data/manifest.json").read_text())
    assert manifest["settings"]["text"]["language_field"] == "lang"
    chain = bertdata("verify-md5", tmp_path / "data", "--chain")
    assert chain.status == 0, chain.err
    assert "of the language in each record's field 'lang'" in chain.out
    page = tmp_path / "report.html"
    assert bertdata("report", tmp_path / "data", "--output", page).status == 0
    assert "19 languages, md5s in manifest.json" in page.read_text(encoding="utf-8")
    assert "ortho_context.tab" not in page.read_text(encoding="utf-8")


def test_records_of_a_settings_object_have_a_default_language_only_if_it_was_chosen() -> None:
    by_field = RecordSettings(language_field="lang")
    assert PartSettings(records=by_field).language is None
    assert PartSettings(records=by_field, language="german").language == "de"
    assert PartSettings().language == "en"
