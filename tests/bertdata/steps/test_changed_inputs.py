"""An input that is changed under a run ends it, and nothing that was made of it counts as finished."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import bertdata
from bertdata.dataset import reader
from bertdata.errors import ChangedInputError, ShardError
from bertdata.sources import line_pieces, piece
from bertdata.steps.extract import STAGES
from bertdata.steps.progress import StepProgress
from tests.support.commands import Program, contents
from tests.support.dumps import page, write_dump
from tests.support.tokenizer_files import train_bpe

PLAIN = {"sentences": "none"}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_pieces, "PIECE_BYTES", 300)
    monkeypatch.setattr(piece, "PIECE_BYTES", 300)


def lines(texts: list[str]) -> bytes:
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


def once(
    change: Callable[[], object], when: Callable[[StepProgress], bool]
) -> Callable[[StepProgress], None]:
    """A progress that changes something the first time that the run is there."""
    waiting = [change]

    def tell(step: StepProgress) -> None:
        if waiting and when(step):
            waiting.pop()()

    return tell


def replace(path: Path, data: bytes) -> None:
    new = path.with_name("new file")
    new.write_bytes(data)
    new.replace(path)


def test_a_file_replaced_between_the_passes_of_dedup_ends_the_run(tmp_path: Path) -> None:
    source, out = tmp_path / "a.jsonl", tmp_path / "out"
    texts = ["alpha", "beta", "alpha", "gamma", "delta"]
    source.write_bytes(lines(texts))
    tell = once(
        lambda: replace(source, lines(["first", *texts])),
        lambda step: step.stage == "looking for duplicates" and step.done == step.total,
    )
    with pytest.raises(ChangedInputError, match=r"a\.jsonl: was changed while it was being read"):
        bertdata.segment(source, out, dedup="exact", progress=tell, **PLAIN)
    assert not out.exists()
    bertdata.segment(source, out, dedup="exact", **PLAIN)
    assert (out / "part-00000.txt").read_text().split() == ["first", "alpha", "beta", "gamma", "delta"]


def test_a_file_cut_at_the_end_of_a_line_ends_the_run(tmp_path: Path) -> None:
    source, out = tmp_path / "a.jsonl", tmp_path / "out"
    texts = [f"text {number}" for number in range(100)]
    source.write_bytes(lines(texts))
    half = len(lines(texts[:50]))
    tell = once(lambda: os.truncate(source, half), lambda step: 0 < step.done < step.total // 2)
    with pytest.raises(ChangedInputError, match=f"it had {len(lines(texts))} bytes and now has {half}"):
        bertdata.segment(source, out, progress=tell, **PLAIN)
    assert not out.exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_no_part_of_a_changed_file_is_kept_by_the_next_run(tmp_path: Path, workers: int) -> None:
    """The file is put back as it was, so that the md5s of both runs are equal."""
    source, whole, out = tmp_path / "a.jsonl", tmp_path / "whole", tmp_path / "out"
    before = lines([f"text {number:03}" for number in range(200)])
    source.write_bytes(before)
    settings = {**PLAIN, "part_size": 0.0005}
    bertdata.segment(source, whole, **settings)
    tell = once(
        lambda: replace(source, before.replace(b"text", b"TEXT")),
        lambda step: 0 < step.done < step.total // 4,
    )
    with pytest.raises(ChangedInputError):
        bertdata.segment(source, out, progress=tell, workers=workers, **settings)
    replace(source, before)
    bertdata.segment(source, out, workers=workers, **settings)
    assert contents(out) == contents(whole)


CHANGED = "the content of {} has changed since an earlier run; what was made from it before is replaced"


def warnings_of(bertdata_program: Program, *words: object) -> list[str]:
    """The lines about changed inputs that a command prints."""
    outcome = bertdata_program(*words)
    assert outcome.status == 0, outcome.err
    return [line for line in outcome.err.splitlines() if "has changed since" in line]


def test_parts_and_shards_that_are_made_again_from_a_changed_file_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small_vocabulary_file: Path
) -> None:
    program, source, parts, shards = Program(capsys), tmp_path / "a.jsonl", tmp_path / "p", tmp_path / "s"
    segment = ("segment", source, "--output", parts, "--sentences=none")
    create = ("create", parts / "part-00000.txt", "--output", shards, "--vocab", small_vocabulary_file)
    create = (*create, "--max-seq-length=16", "--dupe-factor=1")
    source.write_bytes(lines(["the old mill", "the new mill"]))
    for _ in range(2):  # made, then kept
        assert warnings_of(program, *segment) == []
        assert warnings_of(program, *create) == []
    source.write_bytes(lines(["the old mill", "the red mill"]))
    assert warnings_of(program, *segment) == [f"bertdata: warning: {parts}: {CHANGED.format('a.jsonl')}"]
    told = [f"bertdata: warning: {shards}: {CHANGED.format('part-00000.txt')}"]
    assert warnings_of(program, *create) == told
    assert warnings_of(program, *create) == []


def test_changed_articles_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    articles = tmp_path / "in" / "AA"
    articles.mkdir(parents=True)
    words = ("segment", tmp_path / "in", "--output", tmp_path / "out", "--eval-articles=0")
    for text, told in (("One.", 0), ("Two.", 1)):
        (articles / "wiki_00").write_text(f'<doc id="1" url="u" title="T">\nT\n\n{text}\n</doc>\n')
        found = warnings_of(Program(capsys), *words)
        assert found == [f"bertdata: warning: {tmp_path / 'out'}: {CHANGED.format('wiki_00')}"] * told


def test_a_shuffled_set_of_many_changed_parts_names_three(
    tmp_path: Path, small_vocabulary_file: Path
) -> None:
    parts = [tmp_path / f"part-{number}" for number in range(5)]
    given = {"vocab": small_vocabulary_file, "max_seq_length": 16, "dupe_factor": 1}
    for text in ("the old mill\nof the town\n", "the new mill\nof the town\n"):
        for part in parts:
            part.write_text(text)
        made = bertdata.create(parts, tmp_path / "out", shuffle="global", num_shards=2, workers=1, **given)
    names = "part-0, part-1, part-2 and 2 more"
    assert f"{tmp_path / 'out'}: {CHANGED.format(names)}" in made.warnings


def test_a_compressed_file_that_is_cut_is_called_changed_not_damaged(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    source = tmp_path / "a.jsonl.zst"
    texts = [os.urandom(300).hex() for _ in range(3000)]
    source.write_bytes(zstandard.ZstdCompressor().compress(lines(texts)))
    tell = once(lambda: os.truncate(source, source.stat().st_size - 5000), lambda step: step.done > 0)
    with pytest.raises(ChangedInputError):
        bertdata.segment(source, tmp_path / "out", progress=tell, **PLAIN)


def test_articles_that_grow_after_the_parts_are_planned_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    article = b'<doc id="1" url="u" title="One">\nOne\n\nIt is one.\n</doc>\n'
    (tmp_path / "in/AA").mkdir(parents=True)
    files = [tmp_path / "in/AA" / f"wiki_{number:02}" for number in range(3)]
    for file in files:
        file.write_bytes(article)
    tell = once(lambda: files[2].write_bytes(2 * article), lambda step: step.done > 0)
    with pytest.raises(ChangedInputError, match="wiki_02"):
        bertdata.segment(tmp_path / "in", tmp_path / "out", eval_articles=0, workers=1, progress=tell)
    assert not (tmp_path / "out/manifest.json").exists()


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"p{number}.txt" for number in range(3)]
    for number, path in enumerate(found):
        path.write_text(f"the river is wide {number} .\nthe stone is old .\n\nthe gate is shut .\n")
    return found


def test_a_tokenizer_json_replaced_after_the_first_part_ends_the_run(
    parts: list[Path], tmp_path: Path
) -> None:
    texts = [path.read_text() for path in parts]
    tokenizer = train_bpe(tmp_path / "tokenizer.json", texts, 300)
    other = train_bpe(tmp_path / "other.json", texts, 290).read_bytes()
    tell = once(lambda: replace(tokenizer, other), lambda step: bool(step.finished))
    with pytest.raises(ChangedInputError, match=r"tokenizer\.json: was changed while it was being read"):
        bertdata.create(
            parts,
            tmp_path / "out",
            tokenizer=tokenizer,
            objective="mlm",
            masks=False,
            workers=1,
            progress=tell,
        )
    assert not (tmp_path / "out/manifest.json").exists()


def test_a_vocabulary_replaced_after_the_first_part_ends_the_run(
    parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes(small_vocabulary_file.read_bytes())
    tell = once(
        lambda: replace(vocabulary, small_vocabulary_file.read_bytes() + b"zzz\n"),
        lambda step: bool(step.finished),
    )
    with pytest.raises(ChangedInputError, match=r"vocab\.txt"):
        bertdata.create(
            parts, tmp_path / "out", vocab=vocabulary, skip_bad_inputs=True, workers=1, progress=tell
        )
    assert not (tmp_path / "out/manifest.json").exists()


def test_an_evaluation_set_replaced_before_it_is_read_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, excluded = tmp_path / "a.jsonl", tmp_path / "eval.txt"
    source.write_bytes(lines(["one two three four", "five six seven eight"]))
    excluded.write_text("one two three four\n")
    from bertdata.steps import record_source

    plan = record_source.plan_record_parts

    def planned(*given: object) -> object:
        replace(excluded, b"five six seven eight\n")
        return plan(*given)

    monkeypatch.setattr(record_source, "plan_record_parts", planned)
    with pytest.raises(ChangedInputError, match=r"eval\.txt"):
        bertdata.segment(source, tmp_path / "out", exclude=[excluded], exclude_ngram=3, **PLAIN)


@pytest.mark.parametrize("templates", [True, False])
def test_a_dump_replaced_while_it_is_extracted_ends_the_run(tmp_path: Path, templates: bool) -> None:
    pages = [page(f"Page {number}", f"Text of {number}. " * 20, number=number) for number in range(1, 200)]
    source, out = write_dump(tmp_path / "xxwiki-20240101-pages.xml", *pages), tmp_path / "out"
    other = source.read_bytes().replace(b"Text", b"TEXT")
    tell = once(lambda: replace(source, other), lambda step: step.stage == STAGES["articles"])
    with pytest.raises(ChangedInputError, match=r"xxwiki-20240101-pages\.xml"):
        bertdata.extract(source, out, templates=templates, workers=1, progress=tell)
    assert not (out / "manifest.json").exists()


@pytest.mark.parametrize("unverified", [False, True])
def test_a_shard_replaced_after_it_was_counted_is_not_packed(
    parts: list[Path], small_vocabulary_file: Path, tmp_path: Path, unverified: bool
) -> None:
    for seed in (1, 2):
        bertdata.create(parts, tmp_path / str(seed), vocab=small_vocabulary_file, random_seed=seed, workers=1)
    if unverified:
        for name in ("manifest.json", "MD5SUMS"):
            (tmp_path / "1" / name).unlink()
    shard, out = tmp_path / "1/p1.txt.tfrecord", tmp_path / "packed"
    other = (tmp_path / "2/p1.txt.tfrecord").read_bytes()
    assert shard.read_bytes() != other
    tell = once(lambda: replace(shard, other), lambda step: step.done == step.total)
    given = {"unverified": True, "vocab": small_vocabulary_file} if unverified else {}
    with pytest.raises(ShardError, match=r"p1\.txt\.tfrecord: found md5 .*changed"):
        bertdata.pack(tmp_path / "1", out, workers=1, progress=tell, **given)
    assert not (out / "manifest.json").exists()


def test_a_shard_written_to_while_it_is_read_is_refused(
    parts: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    bertdata.create(parts, tmp_path / "out", vocab=small_vocabulary_file, workers=1)
    data = reader.open_dataset(str(tmp_path / "out"))
    changed = pytest.raises(ShardError, match="was changed while it was being read")
    with changed, data.open_shard(data.shards[0]) as opened:
        list(opened.batches(4))
        with open(data.shards[0].path, "ab") as file:
            file.write(b"more")
