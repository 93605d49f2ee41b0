"""Files of sources: found in folders and buckets, their kinds told by bytes, JSON by either parser."""

import gzip
import json
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import create
from bertdata.errors import InputError, MissingInputError, SettingsError
from bertdata.sources import json_lines
from bertdata.sources.find import find_files, find_sources
from bertdata.sources.recognise import recognise
from bertdata.tokens import load as tokens
from tests.support.byte_bpe import byte_bpe
from tests.support.commands import SMALL, Program, contents
from tests.support.paths import ROOT
from tests.support.record_files import FILES, as_json_lines, as_parquet, make_documents, write

DOCUMENTS = make_documents(40)
SOURCE = {"input_kind": "csv", "part_size": 0.003}


@pytest.mark.parametrize("name", [name for name in FILES if ".csv" not in name and ".tsv" not in name])
def test_bytes_tell_the_kind_whatever_the_name(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, DOCUMENTS).rename(tmp_path / "x.csv")
    told = name.removeprefix("a.").removeprefix("file.").split(".")[0]
    expected = {"txt": "csv", "wiki_00": "articles"}.get(told, told)
    assert recognise(str(path)) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"Plain prose.\n\nMore of it.\n",
        b"{curly} prose\nand more\n",
        b"{}\n{}\n",
        b"{'text': 'as Python writes it'}\n",
    ],
)
def test_bytes_of_other_files_tell_none(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(data)
    assert recognise(str(tmp_path / "x.jsonl")) is None
    with pytest.raises(InputError, match="its bytes do not tell its kind; name it: --input-kind blocks"):
        find_sources([str(tmp_path / "x.jsonl")], None)


@pytest.mark.parametrize("name", ["wiki_00", "wiki_00.bz2"])
def test_create_takes_articles_and_makes_the_shards_of_their_json(
    name: str, bertdata: Program, tmp_path: Path
) -> None:
    """Before, the lines of the frame became text of the examples."""
    made = {}
    for one in (name, "a.jsonl"):
        flags = ("--vocab", ROOT / "golden" / "vocab.txt", "--recipe=google", "--workers=1")
        outcome = bertdata(
            "create", write(tmp_path, one, DOCUMENTS), "--output", tmp_path / f"of {one}", *flags
        )
        assert outcome.status == 0, outcome.err
        (shard,) = (tmp_path / f"of {one}").glob("*.tfrecord")
        made[one] = shard.read_bytes()
    assert made[name] == made["a.jsonl"]


def test_a_damaged_first_line_hides_no_json(tmp_path: Path) -> None:
    lines = as_json_lines(DOCUMENTS).split(b"\n")
    (tmp_path / "x").write_bytes(b"\n".join([lines[0][:20], *lines[1:]]))
    assert recognise(str(tmp_path / "x")) == "jsonl"


def test_a_long_first_line_hides_no_json(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(json.dumps({"text": "word " * 100_000}).encode())
    assert recognise(str(tmp_path / "x")) == "jsonl"


def test_a_kind_that_bytes_contradict_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "a.parquet", DOCUMENTS)
    with pytest.raises(InputError, match="looks like parquet, expected jsonl"):
        find_sources([str(path)], "jsonl")
    path = write(tmp_path, "a.jsonl", DOCUMENTS)
    with pytest.raises(InputError, match="looks like jsonl, expected arrow"):
        find_sources([str(path)], "arrow")


def test_folders_patterns_and_their_errors(tmp_path: Path) -> None:
    for name in ("b/x.jsonl", "a/deep/y.jsonl.gz", "a/manifest.json", "a/z.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = [str(tmp_path / "a/deep/y.jsonl.gz"), str(tmp_path / "b/x.jsonl")]
    assert find_files([str(tmp_path)], "jsonl").files == found
    assert find_files([f"{tmp_path}/*"], "jsonl").files == found
    with pytest.raises(MissingInputError, match=r"no files of text found, expected \*.parquet"):
        find_files([str(tmp_path)], "parquet")
    with pytest.raises(SettingsError, match="named twice"):
        find_files([str(tmp_path), found[0]], "jsonl")


def test_a_folder_that_datasets_saved_is_read(bertdata: Program, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"text": DOCUMENTS}).save_to_disk(str(tmp_path / "saved"), num_shards=3)
    (tmp_path / "one").mkdir()
    write(tmp_path / "one", "a.jsonl", DOCUMENTS)
    for name in ("saved", "one"):
        flags = ("--output", tmp_path / f"{name}.out", "--sentences", "none", "--workers", "1")
        outcome = bertdata("segment", tmp_path / name, *flags)
        assert outcome.status == 0, outcome.err
    part = "part-00000.txt"
    assert (tmp_path / "saved.out" / part).read_bytes() == (tmp_path / "one.out" / part).read_bytes()


def test_files_in_a_bucket_give_the_parts_of_local_ones(bertdata: Program, tmp_path: Path) -> None:
    bucket = fsspec.filesystem("memory")
    bucket.pipe("/corpus/a/x.jsonl.gz", gzip.compress(as_json_lines(DOCUMENTS[:20])))
    bucket.pipe("/corpus/b/y.parquet", as_parquet(DOCUMENTS[20:]))
    write(tmp_path, "a.csv", DOCUMENTS)
    flags = ("--output", "memory://corpus.out", "--part-size", "0.002", "--workers", "1")
    assert bertdata("segment", "memory://corpus", *flags, "--text-field", "text").status == 0
    assert bertdata("segment", tmp_path / "a.csv", "--output", tmp_path / "out", *flags[2:]).status == 0
    local = {name: data for name, data in contents(tmp_path / "out").items() if name.startswith("part-")}
    assert len(local) > 2
    assert {name: bucket.cat(f"/corpus.out/{name}") for name in local} == local


@pytest.mark.thorough
@pytest.mark.parametrize(
    "shuffle", [(), ("--shuffle", "global", "--num-shards", "3")], ids=["plain", "global"]
)
def test_shards_depend_on_the_text_alone(
    shuffle: tuple[str, ...], bertdata: Program, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    made = []
    for name in ("a.jsonl.zst", "a.parquet", "a.txt", "a.csv"):
        path, out = write(tmp_path / name, name, DOCUMENTS), tmp_path / name / "out"
        kind = ("--input-kind", "blocks") if name == "a.txt" else ()
        flags = (*kind, "--part-size", "0.003", "--workers", "2")
        assert bertdata("segment", path, "--output", out, *flags).status == 0
        flags = ("--vocab", small_vocabulary_file, *SMALL, *shuffle)
        outcome = bertdata("create", out, "--output", tmp_path / name / "shards", *flags)
        assert outcome.status == 0, outcome.err
        found = contents(tmp_path / name / "shards")
        made.append({file: data for file, data in found.items() if file.endswith(".tfrecord")})
    assert len(made[0]) >= 3
    assert made.count(made[0]) == len(made)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans(), st.integers(0, 60), st.binary(max_size=2))
def test_both_parsers_take_the_same_lines(value: object, ascii: bool, at: int, noise: bytes) -> None:
    """The fast parser, else the standard library: the same texts, the same lines refused."""
    pytest.importorskip("orjson")
    line = json.dumps({"text": value}, ensure_ascii=ascii).encode(errors="surrogatepass")
    line = line[:at] + noise + line[at:]
    found = []
    for parser in (json_lines.orjson, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_lines, "orjson", parser)
            try:
                parsed = json_lines.parse_line(line)
                text = parsed.get("text") if isinstance(parsed, dict) else None
                found.append((type(parsed), list(parsed) if isinstance(parsed, dict) else None, type(text)))
                found[-1] += (text if isinstance(text, str) else None,)
            except ValueError:
                found.append(None)
    if found[0] and found[1] and {found[0][2], found[1][2]} == {int, float}:  # of more than 64 bits
        return
    assert found[0] == found[1]


def test_create_takes_sources_and_makes_the_shards_of_segment(
    bertdata: Program, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    path, flags = write(tmp_path, "a.csv", DOCUMENTS), ("--vocab", small_vocabulary_file, *SMALL)
    of_source = ("--input-kind", "csv", "--part-size", "0.003")
    outcome = bertdata("create", path, "--output", tmp_path / "direct", *flags, *of_source)
    assert outcome.status == 0, outcome.err
    assert bertdata("segment", path, "--output", tmp_path / "parts", *of_source, "--workers=1").status == 0
    assert contents(tmp_path / "parts") == contents(tmp_path / "direct.text")
    assert bertdata("create", tmp_path / "parts", "--output", tmp_path / "two", *flags).status == 0
    assert contents(tmp_path / "direct") == contents(tmp_path / "two")
    python = tmp_path / "python"
    settings = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1, "workers": 1}
    create([path], python, vocab=small_vocabulary_file, **SOURCE, **settings)
    assert contents(python) == contents(tmp_path / "two")


def test_create_makes_parts_of_json_lines_by_their_bytes_and_refuses_prose_with_braces(
    bertdata: Program, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    flags = ("--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL)
    path = write(tmp_path, "a.jsonl.gz", DOCUMENTS)
    assert bertdata("create", path, *flags).status == 0
    assert (tmp_path / "out.text" / "part-00000.txt").exists()
    (tmp_path / "prose.txt").write_text('{"a": 1}\nIt was the first line.\nThis is prose.\n\nMore prose.\n')
    assert bertdata("create", tmp_path / "prose.txt", *flags[2:], "--output", tmp_path / "prose").status == 0
    assert not (tmp_path / "prose.text").exists()


@pytest.mark.parametrize("name", ["a.jsonl.zst", "a.parquet", "a.csv"])
def test_a_dry_run_of_create_tells_the_sources_and_writes_nothing(
    name: str, bertdata: Program, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "in", name, DOCUMENTS)
    kind = name.split(".")[1]
    flags = ("--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL)
    told = ("--input-kind", "csv") if kind == "csv" else ()
    of_source = (*told, "--part-size", "0.003", "--dedup", "exact")
    before = sorted(tmp_path.rglob("*"))
    outcome = bertdata("create", source, *flags, *of_source, "--dry-run")
    assert (outcome.status, outcome.err) == (0, "")
    assert sorted(tmp_path.rglob("*")) == before
    settings, read, parts, nothing = outcome.out.splitlines()
    assert settings.startswith(f"{tmp_path}/out.text: text: recipe records, part_size 0.003, ")
    assert ", dedup exact" in settings
    assert settings.endswith(f", input kinds 1 {kind}")
    assert read == f"  read  {source} ({source.stat().st_size} bytes)"
    assert parts.startswith(f"{tmp_path}/out.text: parts of at most 0.003 MiB of text; ")
    assert nothing == "dry run: nothing was written"


def test_a_dry_run_of_create_refuses_what_the_run_refuses(
    bertdata: Program, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "in", "a.jsonl", DOCUMENTS)
    common = ("--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL)
    assert bertdata("create", source, *common, "--part-size", "0.003").status == 0
    made = contents(tmp_path)
    for wrong in (
        ("--text-field", "body"),  # no such field
        ("--part-size", "0.004"),  # the parts are there, of another size
        ("--shuffle", "global"),  # without a number of shards
        ("--sentences", "all"),
        ("--vocab", tmp_path / "none.txt"),
        ("--vocab", source),  # no vocabulary
    ):
        outcomes = [bertdata("create", source, *common, *wrong, *dry) for dry in ((), ("--dry-run",))]
        assert outcomes[0].status == outcomes[1].status > 0, wrong
        assert outcomes[0].err.splitlines()[-1] == outcomes[1].err.splitlines()[-1]
    assert contents(tmp_path) == made


def test_parts_are_made_once_the_tokenizer_is_known_to_be_sound(
    bertdata: Program, small_vocabulary_file: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "in", "a.jsonl", DOCUMENTS)
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps(byte_bpe(added_tokens=[])))
    for flags, told in (
        ((), "--vocab"),
        (("--vocab", tmp_path / "none.txt"), "none.txt: no such file"),
        (("--vocab", source), "a.jsonl"),
        (("--tokenizer", tokenizer), "names no cls token"),
    ):
        outcome = bertdata("create", source, "--output", tmp_path / "out", *flags, *SMALL)
        assert (outcome.status > 0, told in outcome.err) == (True, True), outcome.err
        assert not (tmp_path / "out.text").exists()
    with pytest.raises(SettingsError, match="names no cls token"):
        create([source], tmp_path / "out", tokenizer=tokenizer, input_kind="jsonl", workers=1)
    assert not (tmp_path / "out.text").exists()


def test_the_check_of_the_tokenizer_leaves_nothing_in_the_process_that_workers_come_from(
    bertdata: Program, tmp_path: Path
) -> None:
    source, tokenizer = write(tmp_path / "in", "a.jsonl", DOCUMENTS), tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps(byte_bpe()))
    before = tokens._choose_tokenizer.cache_info().misses
    common = ("--output", tmp_path / "out", "--tokenizer", tokenizer, *SMALL)
    assert (
        bertdata("create", source, *common, "--objective=mlm", "--sentences=none", "--workers=2").status == 0
    )
    assert tokens._choose_tokenizer.cache_info().misses == before + 1  # by the run itself
