"""Exclusion, exact duplicates and the share held out equal a plain twin, for all files, workers and kills."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata import create
from bertdata import segment as segment_step
from bertdata.errors import InputError, SettingsError
from bertdata.io import sorted_entries
from bertdata.sources import arrow_records, csv_records, line_pieces, parquet_records, piece, plain_text
from bertdata.sources.settings import RecordSettings
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import plan_records
from bertdata.text.segment_records import segment_records
from bertdata.text.selection.settings import SelectionSettings, find_evaluation_files
from bertdata.text.settings import SegmentCounts
from tests.support.commands import SMALL, Program, contents
from tests.support.fake_splitters import load_period_splitter
from tests.support.paths import GOLDEN
from tests.support.record_files import FILES, kind_of, write
from tests.support.selected_records import Selected, as_parts, select

PART_SIZE = 0.0015
NGRAM = 5
WORDS = ["river", "stone", "light", "harbour", "gate", "letter", "window", "orchard", "mill", "a", "b"]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (line_pieces, piece, plain_text, csv_records, arrow_records, parquet_records):
        monkeypatch.setattr(module, "PIECE_BYTES", 900)
    monkeypatch.setattr(parquet_records, "_LARGE_GROUP_BYTES", 900)
    monkeypatch.setattr(parquet_records, "_BATCH_ROWS", 9)
    monkeypatch.setattr(sorted_entries, "RUN_ENTRIES", 7)
    monkeypatch.setattr(sorted_entries, "MOST_RUNS", 3)


def planted(number: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Documents, some of them twice or with other blank lines, and the texts of an evaluation set, of which
    some documents hold a piece: in other case, with other punctuation, over the end of a line."""
    rng = random.Random(seed)

    def text(words: int) -> str:
        return " ".join(rng.choice(WORDS) + rng.choice(["", "", ",", "."]) for _ in range(words))

    evaluation = [text(rng.randrange(2, 30)) for _ in range(12)]
    documents: list[str] = []
    for _ in range(number):
        kind = rng.randrange(6)
        if kind == 0 and documents:
            documents.append(rng.choice(documents).replace("\n", "\n \n"))
        elif kind == 1:
            words = rng.choice(evaluation).split()
            start = rng.randrange(len(words))
            stolen = " - ".join(words[start : start + rng.randrange(2, 9)]).upper()
            documents.append(f"{text(6)}\n{stolen}\n{text(4)}")
        else:
            documents.append("\n".join(text(rng.randrange(1, 12)) for _ in range(rng.randrange(1, 4))))
    return documents, evaluation


DOCUMENTS, EVALUATION = planted(150)


def settings_for(evaluation: Path | None = None, **changes: Any) -> PartSettings:
    files = () if evaluation is None else find_evaluation_files([str(evaluation)])
    selection = SelectionSettings(exclude=files, exclude_ngram=NGRAM, **changes)
    records = RecordSettings(skip_bad_records=True)
    return PartSettings(part_size=PART_SIZE, sentences="none", selection=selection, records=records)


def make(
    path: Path, output: Path, chosen: PartSettings, *, workers: int = 1, engine: Any = None
) -> SegmentCounts:
    plan = plan_records([str(path)], kind_of(path.name), chosen)
    return segment_records(plan, str(output), load_period_splitter, workers=workers, engine=engine)


def write_evaluation(directory: Path, texts: list[str] = EVALUATION) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "eval.txt").write_text("\n\n".join(texts))
    return directory / "eval.txt"


def expected_files(found: Selected) -> dict[str, bytes]:
    lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in found.removed)
    part_bytes = PART_SIZE * (1 << 20)
    return {
        **as_parts("part", found.training, part_bytes),
        **as_parts("eval", found.withheld, part_bytes),
        **({"removed.jsonl": lines.encode()} if lines else {}),
    }


def files_of(output: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(output).items() if name not in ("MD5SUMS", "manifest.json")}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_what_the_twin_gives(name: str, tmp_path: Path) -> None:
    chosen = settings_for(write_evaluation(tmp_path), dedup="exact", eval_share="40%")
    plain = kind_of(name) is not None  # of which a blank line ends a document
    documents = [re.sub(r"\n[ \n]+", "\n", text) for text in DOCUMENTS] if plain else DOCUMENTS
    path = write(tmp_path / "in", name, documents)
    counts = make(path, tmp_path / "out", chosen)
    expected = select([(name, documents)], EVALUATION, NGRAM, dedup=True, percent="40")
    if kind_of(name) == "articles":  # each has an id, here its number from 0
        lines = [(line.pop("file"), line.pop("record"), line) for line in expected.removed]
        expected.removed[:] = [
            {"file": file, "record": n, "id": str(n - 1), **line} for file, n, line in lines
        ]
    assert files_of(tmp_path / "out") == expected_files(expected)
    reasons = [line["reason"] for line in expected.removed]
    assert len([one for one in files_of(tmp_path / "out") if one.startswith("eval-")]) > 1
    assert (counts.excluded, counts.duplicate, counts.withheld) == tuple(
        map(reasons.count, ("excluded", "duplicate", "withheld"))
    )
    assert min(counts.excluded, counts.duplicate, counts.withheld) > 5
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["inputs"][0]["duplicate"] == manifest["totals"]["duplicate"] == counts.duplicate
    assert manifest["settings"]["eval_share"] == "40%"
    assert [one["name"] for one in manifest["settings"]["exclude"]] == ["eval.txt"]


LINES = st.lists(st.lists(st.sampled_from("abcd"), max_size=5).map(" ".join), max_size=3)
TEXTS = st.lists(LINES.map("\n".join), min_size=1, max_size=14)


@settings(max_examples=60, deadline=None)
@given(
    sources=st.lists(TEXTS, min_size=1, max_size=3),
    evaluation=st.lists(st.lists(st.sampled_from("abcd"), min_size=3, max_size=6).map(" ".join), max_size=3),
    dedup=st.booleans(),
    percent=st.sampled_from(["0", "30", "0.5", "99.99"]),
    engine=st.sampled_from(["native", "python"]),
)
def test_generated_corpora_give_what_the_twin_gives(
    sources: list[list[str]],
    evaluation: list[str],
    dedup: bool,
    percent: str,
    engine: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = tmp_path_factory.mktemp("case")
    named = [(f"{number}.jsonl", texts) for number, texts in enumerate(sources)]
    for name, texts in named:
        (place / name).write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (place / "eval").mkdir()
    files = find_evaluation_files([str(write_evaluation(place / "eval", evaluation))]) if evaluation else ()
    selection = SelectionSettings(
        exclude=files,
        exclude_ngram=3,
        dedup="exact" if dedup else None,
        eval_share=None if percent == "0" else f"{percent}%",
    )
    records = RecordSettings(skip_bad_records=True, text_field="text")
    chosen = PartSettings(part_size=0.00002, sentences="none", selection=selection, records=records)
    expected = select(named, evaluation, 3, dedup=dedup, percent=percent)
    plan = plan_records([str(place / name) for name, _ in named], "jsonl", chosen)
    run: Any = {"engine": engine}
    if not expected.training:
        with pytest.raises(InputError):
            segment_records(plan, str(place / "out"), load_period_splitter, **run)
        return
    segment_records(plan, str(place / "out"), load_period_splitter, **run)
    found = files_of(place / "out")
    assert [json.loads(line) for line in found.pop("removed.jsonl", b"").splitlines()] == expected.removed
    assert found == {
        **as_parts("part", expected.training, 0.00002 * (1 << 20)),
        **as_parts("eval", expected.withheld, 0.00002 * (1 << 20)),
    }


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.parquet"])
def test_any_number_of_workers_writes_the_same_directory(name: str, tmp_path: Path) -> None:
    chosen = settings_for(write_evaluation(tmp_path), dedup="exact", eval_share="40%")
    path = write(tmp_path / "in", name, DOCUMENTS)
    for workers in (1, 3):
        make(path, tmp_path / str(workers), chosen, workers=workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "3")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet", "a.csv"])
def test_a_run_that_was_killed_anywhere_goes_on_to_the_same_directory(name: str, tmp_path: Path) -> None:
    chosen = settings_for(write_evaluation(tmp_path), dedup="exact", eval_share="40%")
    path = write(tmp_path / "in", name, DOCUMENTS)
    make(path, tmp_path / "whole", chosen)
    plan = plan_records([str(path)], kind_of(name), chosen)
    passes = 0
    for die_after in range(1, 1000, 3):
        told, out = 0, tmp_path / f"out-{die_after}"

        def die(file: int, size: int, last: int = die_after) -> None:
            nonlocal told
            told += 1
            if told == last:
                raise KeyboardInterrupt

        try:
            segment_records(plan, str(out), load_period_splitter, progress=die, hashing=die)
        except KeyboardInterrupt:
            assert not (out / "manifest.json").exists()
            passes += 1
        make(path, out, chosen)
        assert contents(out) == contents(tmp_path / "whole")
        if told < die_after:
            break
    assert passes > 5


def test_a_second_run_hashes_nothing_again_and_writes_no_part_again(tmp_path: Path) -> None:
    chosen = settings_for(dedup="exact")
    path, out = write(tmp_path / "in", "a.jsonl", DOCUMENTS), tmp_path / "out"
    plan, pieces = plan_records([str(path)], None, chosen), []

    def die(file: int, size: int) -> None:
        pieces.append(size)
        if len(pieces) == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        segment_records(plan, str(out), load_period_splitter, progress=die)
    kept = {part.name: part.stat().st_ino for part in out.glob("part-*")}
    assert kept
    hashed: list[int] = []
    segment_records(plan, str(out), load_period_splitter, hashing=lambda file, size: hashed.append(size))
    assert not hashed
    assert {name: (out / name).stat().st_ino for name in kept} == kept


def test_the_share_of_the_others_stays_when_a_source_is_added(tmp_path: Path) -> None:
    chosen = settings_for(eval_share="25%")
    more, _ = planted(80, seed=2)
    for name, files in {"one": [DOCUMENTS], "two": [more, DOCUMENTS]}.items():
        for number, documents in enumerate(files):
            write(tmp_path / name, "a.jsonl", documents).rename(tmp_path / name / f"{number}.jsonl")
        make(tmp_path / name, tmp_path / f"{name}.out", chosen)

    def held_out(name: str) -> set[str]:
        found = contents(tmp_path / f"{name}.out")
        return {
            document
            for part, data in found.items()
            if part.startswith("eval-")
            for document in data.decode().split("\n\n")
        }

    assert held_out("one") < held_out("two")
    trained = contents(tmp_path / "two.out")
    documents = {
        document
        for part, data in trained.items()
        if part.startswith("part-")
        for document in data.decode().split("\n\n")
        if document
    }
    assert not documents & held_out("two")


def test_sources_that_lose_their_held_out_documents_leave_no_old_files(tmp_path: Path) -> None:
    chosen = settings_for(eval_share="40%", dedup="exact")
    path, out = write(tmp_path / "in", "a.jsonl", DOCUMENTS), tmp_path / "out"
    make(path, out, chosen)
    assert (out / "eval-00000.txt").exists()
    kept = [
        text
        for text in dict.fromkeys(DOCUMENTS)
        if not select([("a", [text])], percent="40").withheld and "\n \n" not in text
    ]
    write(tmp_path / "in", "a.jsonl", kept)
    make(path, out, chosen)
    assert not [name for name in contents(out) if name.startswith(("eval-", "removed"))]


def test_ids_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "A b.", "id": "x"}\n{"text": "\\nA b.\\r\\n", "id": "y"}\n')
    plan = plan_records(
        [str(tmp_path / "a.jsonl")],
        None,
        PartSettings(
            selection=SelectionSettings(dedup="exact"),
            records=RecordSettings(id_field="id"),
            sentences="none",
        ),
    )
    segment_records(plan, str(tmp_path / "out"), load_period_splitter)
    of = {"file": "a.jsonl", "record": 1}
    line = {"file": "a.jsonl", "record": 2, "id": "y", "reason": "duplicate", "of": of}
    assert json.loads((tmp_path / "out" / "removed.jsonl").read_text()) == line


@pytest.mark.parametrize("share", ["1", "0%", "100%", "-1%", "x%", "%", "0.01"])
def test_a_share_that_is_none_is_told(share: str) -> None:
    with pytest.raises(SettingsError, match="expected a share such as 1%, above 0% and below 100%"):
        SelectionSettings(eval_share=share)


def test_shares_that_are_equal_have_one_name() -> None:
    assert (
        SelectionSettings(eval_share="0.50%").eval_share == SelectionSettings(eval_share="0.5 %").eval_share
    )
    assert SelectionSettings(eval_share="10%").hash_limit == (1 << 64) // 10


def test_the_command_counts_what_it_left_out_and_create_takes_the_rest(
    bertdata: Program, tmp_path: Path, punkt_tables: None
) -> None:
    path, evaluation = write(tmp_path / "in", "a.jsonl", DOCUMENTS), write_evaluation(tmp_path)
    flags = ["--exclude", evaluation, "--exclude-ngram", NGRAM, "--dedup", "exact", "--eval-share", "40%"]
    flags += ["--part-size", PART_SIZE, "--workers", "1"]
    expected = select([("a.jsonl", DOCUMENTS)], EVALUATION, NGRAM, dedup=True, percent="40")
    told = f"{len(expected.withheld)} of them held out, "
    outcome = bertdata("segment", path, "--output", tmp_path / "parts", *flags, "--dry-run")
    assert "dedup exact" in outcome.out
    assert not (tmp_path / "parts").exists()
    outcome = bertdata("segment", path, "--output", tmp_path / "parts", *flags)
    assert outcome.status == 0, outcome.err
    assert told in outcome.out
    assert " excluded, " in outcome.out
    assert " duplicate left out" in outcome.out
    assert bertdata("verify-md5", tmp_path / "parts", "--chain").status == 0
    vocabulary = ("--vocab", GOLDEN / "vocab.txt", *SMALL)
    assert bertdata("create", tmp_path / "parts", "--output", tmp_path / "one", *vocabulary).status == 0
    outcome = bertdata("create", path, "--output", tmp_path / "two", *vocabulary, *flags)
    assert outcome.status == 0, outcome.err
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert contents(tmp_path / "parts") == contents(tmp_path / "two.text")
    assert not [name for name in contents(tmp_path / "one") if "eval" in name or "removed" in name]
    outcome = bertdata("create", *(tmp_path / "parts").glob("*.txt"), "--output", tmp_path / "x", *vocabulary)
    outcome.assert_one_error(2, "eval-00000.txt", "is held out of training")
    held_out = sorted((tmp_path / "parts").glob("eval-*"))
    assert bertdata("create", *held_out, "--output", tmp_path / "evaluation", *vocabulary).status == 0


def test_a_file_of_settings_and_the_python_face_say_the_same(
    tmp_path: Path, punkt_tables: None, bertdata: Program
) -> None:
    path, evaluation = write(tmp_path / "in", "a.jsonl", DOCUMENTS), write_evaluation(tmp_path)
    config = tmp_path / "dataset.toml"
    lines = [
        f'exclude = ["{evaluation}"]',
        f"exclude_ngram = {NGRAM}",
        'dedup = "exact"',
        'eval_share = "40%"',
    ]
    config.write_text("\n".join(["[text]", *lines, 'sentences = "none"', ""]))
    outcome = bertdata("segment", path, "--output", tmp_path / "one", "--config", config, "--workers", "1")
    assert outcome.status == 0, outcome.err
    given: Any = {"exclude": [evaluation], "exclude_ngram": NGRAM, "dedup": "exact", "eval_share": "40%"}
    counts = segment_step(path, tmp_path / "two", sentences="none", workers=1, **given)
    assert counts.duplicate > 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    small: Any = {"vocab": GOLDEN / "vocab.txt", "max_seq_length": 64, "max_predictions_per_seq": 8}
    create(path, tmp_path / "made", sentences="none", workers=1, **given, **small)
    assert contents(tmp_path / "made.text") == contents(tmp_path / "one")
    config.write_text('[text]\neval_share = "2"\n')
    outcome = bertdata("segment", path, "--output", tmp_path / "bad", "--config", config)
    outcome.assert_one_error(2, f"{config}:2: ", "eval_share is '2', expected a share such as 1%")


def test_nothing_left_to_train_on_is_an_error_that_says_why(tmp_path: Path) -> None:
    path = write(tmp_path / "in", "a.jsonl", [EVALUATION[0] + " and more"])
    evaluation = tmp_path / "eval.txt"
    evaluation.write_text(EVALUATION[0] + " and more")
    with pytest.raises(InputError, match="no record is left to train on, here or in other files: 1 excluded"):
        make(path, tmp_path / "out", settings_for(evaluation))
    assert not (tmp_path / "out").exists()
