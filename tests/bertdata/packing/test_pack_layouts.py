"""``bertdata pack`` in every layout: names, examples, Habana's metadata, Graphcore's index, full rows."""

import json
from collections import Counter
from pathlib import Path

import pytest

import bertdata
from bertdata.dataset.reader import open_dataset
from bertdata.errors import SettingsError
from bertdata.packing.habana_metadata import compute_metadata, find_top_strategies, make_metadata_path
from bertdata.packing.methods import split_rows
from bertdata.packing.pack_plan import Lengths, make_plan
from golden.cases import VOCABULARY
from tests.support.commands import contents

NAMES = {
    "flat": ["shard-00000-of-00002.parquet", "shard-00001-of-00002.parquet"],
    "habana": ["mixed_strategies_part_0.hdf5"],
    "graphcore": ["wiki_000.tfrecord"],
    "nvidia": ["part_00000_of_00002.hdf5", "part_00001_of_00002.hdf5"],
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("layouts") / "shards"
    corpus = [str(path) for path in sorted((Path(VOCABULARY).parent / "corpus").glob("part-*"))[:2]]
    sizes = {"max_seq_length": 128, "max_predictions_per_seq": 20, "dupe_factor": 2, "workers": 1}
    bertdata.create(corpus, place, vocab=VOCABULARY, dialect="graphcore", recipe="mlperf", **sizes)
    return place


def examples_of(path: Path) -> Counter[str]:
    opened = open_dataset(str(path))
    return Counter(
        repr(one) for shard in opened.shards for batch in opened.batches(shard) for one in batch.examples()
    )


@pytest.mark.parametrize("layout", NAMES)
def test_each_layout_holds_the_same_examples_under_its_own_names(bertdata, source, tmp_path, layout):
    output = tmp_path / "packed"
    outcome = bertdata("pack", source, "--output", output, "--layout", layout, "--workers", "1")
    assert outcome.status == 0, outcome.err
    manifest = json.loads((output / "manifest.json").read_text())
    assert [shard["name"] for shard in manifest["shards"]] == NAMES[layout]
    assert manifest["settings"]["container"]["packing"] == layout
    assert examples_of(output) == examples_of(source)
    for flags in ((), ("--content",)):
        outcome = bertdata("verify-md5", output, *flags)
        assert outcome.status == 0, outcome.out
    rows = sum(shard["rows"] for shard in manifest["shards"])
    assert rows < manifest["totals"]["examples"]


def test_shards_may_be_chosen_and_have_nearly_equal_numbers_of_rows(bertdata, source, tmp_path):
    output = tmp_path / "packed"
    flags = ("--layout", "habana", "--format", "tfrecord", "--num-shards", "3", "--workers", "1")
    assert bertdata("pack", source, "--output", output, *flags).status == 0
    shards = json.loads((output / "manifest.json").read_text())["shards"]
    assert [shard["name"] for shard in shards] == [f"mixed_strategies_part_{n}.tfrecord" for n in range(3)]
    rows = [shard["rows"] for shard in shards]
    assert max(rows) - min(rows) <= 1
    assert examples_of(output) == examples_of(source)


def test_graphcores_index_is_checked_with_its_shard(bertdata, source, tmp_path):
    output = tmp_path / "packed"
    flags = ("--layout", "graphcore", "--workers", "1")
    assert bertdata("pack", source, "--output", output, *flags).status == 0
    data = (output / "wiki_000.tfrecord").read_bytes()
    lines, place = [], 0
    while place < len(data):
        size = int.from_bytes(data[place : place + 8], "little") + 16
        lines.append(f"{place} {size}\n")
        place += size
    before = contents(output)
    assert before["wiki_000.index"] == "".join(lines).encode()
    assert b"  wiki_000.index\n" in before["MD5SUMS"]
    (output / "wiki_000.index").write_text("0 1\n")
    outcome = bertdata("verify-md5", output)
    assert outcome.status == 1
    assert "wiki_000.index: wrong md5" in outcome.out
    (output / "wiki_000.index").unlink()
    assert "wiki_000.index: missing" in bertdata("verify-md5", output).out
    outcome = bertdata("pack", source, "--output", output, *flags)
    assert "made wiki_000.tfrecord" in outcome.err
    assert contents(output) == before


def test_the_metadata_file_lies_beside_the_directory(bertdata, source, tmp_path):
    output = f"{tmp_path}/packed/"
    assert bertdata("pack", source, "--output", output, "--layout=habana", "--workers=1").status == 0
    assert make_metadata_path(output) == f"{tmp_path}/packed_metadata.json"
    found = json.loads((tmp_path / "packed_metadata.json").read_text())
    manifest = json.loads((tmp_path / "packed" / "manifest.json").read_text())
    examples, rows = manifest["totals"]["examples"], manifest["shards"][0]["rows"]
    assert found["original_number_of_samples"] == examples
    assert found["new_number_of_samples"] == rows
    assert found["avg_seq_per_sample"] == examples / rows
    assert found["packing_efficiency"] == manifest["totals"]["tokens"] / (128 * rows)


def test_the_metadata_are_those_that_habanas_program_wrote(kit):
    """The original's recipe, its padding sequences taken away, gives the original's numbers."""
    original = json.loads((kit / "packing" / "habana__part-00000__s512__p80.json").read_text())
    expected, padding = original["metadata"], Counter({int(k): v for k, v in original["padding"].items()})
    rows: Counter[Lengths] = Counter()
    for lengths, number in original["recipe"]:
        for _ in range(number):
            kept = []
            for length in lengths:
                if padding[length]:
                    padding[length] -= 1
                else:
                    kept.append(length)
            rows[tuple(kept)] += 1
    assert not padding.total()
    empty = rows.pop((), 0)
    plan = make_plan(512, rows)
    assert (plan.examples, plan.tokens) == (12954, 5230601)
    found = compute_metadata(plan)
    assert found.keys() == expected.keys()
    if not empty:
        for name in expected.keys() - {"number_of_strategies_utilized", "top_8_strategies"}:
            assert found[name] == pytest.approx(expected[name], rel=1e-12), name
    recipe = make_plan(512, {tuple(lengths): number for lengths, number in original["recipe"]})
    assert (
        compute_metadata(recipe)["number_of_strategies_utilized"] == expected["number_of_strategies_utilized"]
    )
    assert find_top_strategies(recipe)[:2] == expected["top_8_strategies"][:2]
    eighth = sorted((number for _, number in original["recipe"]), reverse=True)[7]
    used = {
        find_top_strategies(make_plan(512, {tuple(lengths): 1}))[0]: number
        for lengths, number in original["recipe"]
        if number >= eighth  # no other may be among the first eight
    }
    numbers = [
        [used[one] for one in top] for top in (find_top_strategies(recipe), expected["top_8_strategies"])
    ]
    assert numbers[0] == numbers[1] == sorted(used.values(), reverse=True)[:8]


def test_rows_with_too_many_masked_positions_are_split():
    plan = make_plan(12, {(2, 4, 6): 3, (6, 6): 2, (12,): 1})
    masks = [0, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5]
    assert split_rows(plan, masks, None) is plan
    assert split_rows(plan, masks, 6) == plan
    assert split_rows(plan, masks, 5) == make_plan(12, {(4, 6): 3, (2,): 3, (6,): 4, (12,): 1})
    assert (split_rows(plan, masks, 5).histogram() == plan.histogram()).all()
    with pytest.raises(SettingsError, match="an example of 12 tokens may have 5 masked positions, but a row"):
        split_rows(plan, masks, 4)
