"""Commands and ``open_dataset`` on packed rows of every layout."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from bertdata import open_dataset
from bertdata.cli.main import main
from bertdata.errors import ShardError
from bertdata.examples.bert.batch import BertExample
from bertdata.shards.containers import open_reader
from bertdata.shards.packed.layouts import LAYOUTS
from bertdata.shards.packed.packs import PackReader
from tests.support.commands import SMALL, Program
from tests.support.original_packs import as_hdf5, as_tfrecord, load_packs

FORMS = [(name, format) for name, layout in LAYOUTS.items() for format in layout.formats]
LENGTH = 64  # as SMALL says


@pytest.fixture(scope="module")
def made(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """The sample corpus as examples, and packed in each layout; below 'all', named ``layout-format``."""
    place = tmp_path_factory.mktemp("made")
    create = ["create", *map(str, corpus), "--vocab", str(small_vocabulary_file), "--output"]
    assert main([*create, str(place / "examples"), *SMALL]) == 0
    for name, format in FORMS:
        pack = ["pack", str(place / "examples"), "--layout", name, "--format", format, "--num-shards=2"]
        assert main([*pack, "--output", str(place / f"{name}-{format}"), "--workers=1"]) == 0
    return place


@pytest.fixture(params=FORMS, ids=["-".join(form) for form in FORMS])
def packed(made, request) -> Path:
    return made / "-".join(request.param)


def shards_of(directory: Path) -> list[Path]:
    return [
        directory / entry["name"] for entry in json.loads((directory / "manifest.json").read_text())["shards"]
    ]


def rows_of(*paths: Path) -> list[list[BertExample]]:
    rows = []
    for path in paths:
        with open_reader(path) as reader:
            assert isinstance(reader, PackReader)
            rows += [row for packs in reader.packs(7) for row in packs.rows()]
    return rows


def all_rows(directory: Path) -> list[list[BertExample]]:
    return rows_of(*shards_of(directory))


@pytest.mark.parametrize("target", ["tfrecord", "hdf5", "parquet"])
def test_a_packed_shard_becomes_its_examples(packed, target, bertdata: Program, tmp_path):
    shard, unpacked = shards_of(packed)[0], tmp_path / f"unpacked.{target}"
    outcome = bertdata("convert", shard, unpacked)
    assert outcome.status == 0, outcome.err
    expected = [example for row in all_rows(packed) for example in row]
    with open_reader(unpacked) as reader:
        found = list(reader)
        assert reader.layout.packing is None
        assert reader.layout.max_seq_length == LENGTH
    assert outcome.out == f"{unpacked}: {len(found)} examples\n"
    assert found == expected[: len(found)]
    assert (
        bertdata("md5", "--content", shard).out.split()[0]
        == bertdata("md5", "--content", unpacked).out.split()[0]
    )


def test_all_examples_are_in_the_rows_once(packed, made):
    source = Counter(map(repr, open_dataset(made / "examples")))
    assert Counter(repr(example) for row in all_rows(packed) for example in row) == source


def test_the_dataset_gives_examples_row_by_row(packed):
    assert list(open_dataset(packed)) == [example for row in all_rows(packed) for example in row]


def test_show_prints_the_sequences_of_a_row_one_after_the_other(packed, bertdata: Program):
    shard = shards_of(packed)[-1]
    number, row = next((number, row) for number, row in enumerate(rows_of(shard)) if len(row) == 2)
    outcome = bertdata("show", shard, f"--index={number}")
    assert outcome.status == 0, outcome.err
    titles = re.findall(
        r"^row (\d+), sequence (\d) of (\d): (\d+) ids and (\d+) of padding", outcome.out, re.M
    )
    padding = LENGTH - sum(len(example.ids) for example in row)
    assert [list(map(int, title)) for title in titles] == [
        [number, 1, 2, len(row[0].ids), 0],
        [number, 2, 2, len(row[1].ids), padding],
    ]
    assert outcome.out.count("[CLS]") == 2


def test_show_counts_rows(packed, bertdata: Program):
    shard = shards_of(packed)[0]
    outcome = bertdata("show", shard, "--index=0", "--num=3")
    assert {int(row) for row in re.findall(r"^row (\d+), sequence", outcome.out, re.M)} == {0, 1, 2}
    entry = json.loads((packed / "manifest.json").read_text())["shards"][0]
    rows = entry["rows"]
    outcome = bertdata("show", shard, f"--index={rows}")
    outcome.assert_one_error(2, f"--index {rows}: {shard} holds {rows} rows, the last is {rows - 1}")


def test_stats_tells_sequences_a_row_and_efficiency(packed, bertdata: Program):
    rows = all_rows(packed)
    tokens = sum(len(example.ids) for row in rows for example in row)
    counts = Counter(map(len, rows))
    [found] = json.loads(bertdata("stats", packed, "--json", "--workers=1").out)["datasets"]
    assert found["packing"] == {
        "layout": packed.name.split("-")[0],
        "rows": len(rows),
        "most_sequences_per_row": 3,
        "sequences_per_row": round(sum(map(len, rows)) / len(rows), 6),
        "rows_by_sequences": {str(number): counts[number] for number in sorted(counts)},
        "efficiency": round(tokens / (len(rows) * LENGTH), 6),
    }
    assert found["examples"] == sum(map(len, rows))
    assert found["tokens"] == tokens
    assert found["padding_share"] == round(1 - tokens / (len(rows) * LENGTH), 6)
    text = bertdata("stats", packed, "--workers=1").out
    assert f"{len(rows):,} of the layout {packed.name.split('-')[0]}" in text
    assert f"mean {sum(map(len, rows)) / len(rows):.3f}; " in text
    assert f"{tokens / (len(rows) * LENGTH):.3%} of the positions hold a token" in text


def test_stats_of_examples_say_nothing_of_packing(made, bertdata: Program):
    [found] = json.loads(bertdata("stats", made / "examples", "--json", "--workers=1").out)["datasets"]
    assert "packing" not in found
    assert "packed" not in bertdata("stats", made / "examples", "--workers=1").out


@pytest.mark.parametrize("flags", [[], ["--content"]])
def test_a_packed_dataset_is_verified(packed, flags, bertdata: Program):
    outcome = bertdata("verify-md5", packed, *flags)
    assert outcome.status == 0, outcome.out + outcome.err


def test_a_wrong_number_of_rows_is_a_fault(packed, bertdata: Program, tmp_path):
    copy = Path(shutil.copytree(packed, tmp_path / "set"))
    manifest = json.loads((copy / "manifest.json").read_text())
    rows = manifest["shards"][1]["rows"]
    manifest["shards"][1]["rows"] = rows + 1
    (copy / "manifest.json").write_text(json.dumps(manifest))
    outcome = bertdata("verify-md5", copy)
    assert outcome.status == 1
    assert f"found {rows} packed rows, expected {rows + 1} packed rows" in outcome.out
    outcome = bertdata("stats", copy, "--workers=1")
    assert outcome.status == 1
    assert f"{rows} rows, expected {rows + 1} as manifest.json says" in outcome.err.splitlines()[-1]


def test_the_content_of_a_damaged_packed_shard_is_a_fault(packed, bertdata: Program, tmp_path):
    copy = Path(shutil.copytree(packed, tmp_path / "set"))
    path = shards_of(copy)[1]
    other = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(other)
    outcome = bertdata("verify-md5", copy, "--content")
    assert outcome.status == 1
    assert path.name in outcome.out


def test_a_shard_of_another_layout_is_refused(made, tmp_path, bertdata: Program):
    copy = Path(shutil.copytree(made / "habana-tfrecord", tmp_path / "set"))
    theirs, ours = shards_of(made / "graphcore-tfrecord")[0], shards_of(copy)[0]
    ours.write_bytes(theirs.read_bytes())
    files = f"{tmp_path}/set/*.tfrecord"
    for path in copy.glob("manifest.json"):
        path.unlink()
    with pytest.raises(ShardError, match=f"^{re.escape(str(shards_of_unlisted(copy)[1]))}: packing is "):
        open_dataset(files, unverified=True)


def shards_of_unlisted(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.tfrecord"))


ORIGINALS = {
    "habana__part-00000__s512__p80": ("packed_", as_hdf5, "hdf5"),
    "graphcore__eval__s128__p20": ("", as_tfrecord, "tfrecord"),
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_show_prints_the_originals_packs(name, kit, bertdata: Program, tmp_path):
    prefix, encode, ending = ORIGINALS[name]
    packs = load_packs(kit / "packing" / f"{name}__sample.npz", own_prefix=prefix)
    path = tmp_path / f"original.{ending}"
    path.write_bytes(encode(packs.fields))
    vocabulary = kit / "vocab" / "bert-base-uncased.txt"
    words = vocabulary.read_text(encoding="utf-8").split("\n")
    number, row = next((number, row) for number, row in enumerate(packs.sequences) if len(row) == 3)
    outcome = bertdata("show", path, f"--index={number}", "--vocab", vocabulary)
    assert outcome.status == 0, outcome.err
    blocks = re.split(rf"^(?=row {number}, )", outcome.out, flags=re.M)[1:]
    assert len(blocks) == 3
    for place, (block, example) in enumerate(zip(blocks, row, strict=True), 1):
        assert block.startswith(f"row {number}, sequence {place} of 3: {len(example.ids)} ids and ")
        first = " ".join(words[i] for i in example.ids[: example.first_length])
        second = " ".join(words[i] for i in example.ids[example.first_length :])
        assert f"\n  A  {first}\n  B  {second}\n" in block
        masks = re.findall(r"^  (\d+) +(?:\[MASK\]|random|kept) ", block, re.M)
        assert list(map(int, masks)) == example.positions


@pytest.mark.parametrize("name", ORIGINALS)
def test_stats_reads_the_originals_packs(name, kit, bertdata: Program, tmp_path):
    prefix, encode, ending = ORIGINALS[name]
    packs = load_packs(kit / "packing" / f"{name}__sample.npz", own_prefix=prefix)
    path = tmp_path / f"original.{ending}"
    path.write_bytes(encode(packs.fields))
    [found] = json.loads(bertdata("stats", path, "--json", "--workers=1").out)["datasets"]
    assert found["examples"] == sum(map(len, packs.sequences))
    assert found["packing"]["rows_by_sequences"] == {"1": 8, "2": 12, "3": 12}
