"""``bertdata stats`` against the same numbers counted one example at a time."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.cli.main import main
from bertdata.config.dialects import find_dialect
from bertdata.dataset.discover import FoundDataset
from bertdata.examples.bert.batch import BertExample
from bertdata.examples.bert.objective import BERT
from bertdata.examples.counting import find_quantile
from bertdata.examples.mask_report import find_mask_kind
from bertdata.records import ShardLayout
from bertdata.reports.shard_counts import ShardCounts
from bertdata.reports.summary import Statistics
from bertdata.shards.containers import open_reader
from bertdata.shards.tfrecord import encode_batch
from bertdata.tokens.vocabulary import parse_vocabulary
from golden.cases import VOCABULARY, case_names, load_case, make
from tests.support.commands import SMALL, Program
from tests.support.small_shards import LAYOUT, examples, pack, plain_row

KINDS = ("tfrecord", "hdf5", "parquet")
LENGTH, PREDICTIONS = 64, 10  # as SMALL says


@pytest.fixture(scope="module")
def made(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """The sample corpus as a dataset of each container, and as one of two phases."""
    place = tmp_path_factory.mktemp("made")
    create = ["create", *map(str, corpus), "--vocab", str(small_vocabulary_file)]
    for kind in KINDS:
        assert main([*create, "--output", str(place / kind), "--format", kind, *SMALL]) == 0
    phases = ["--recipe", "nvidia", "--dupe-factor=1", "--format=tfrecord", "--workers=1"]
    assert main([*create, "--output", str(place / "phases"), *phases]) == 0
    return place


@pytest.fixture
def dataset(made, tmp_path) -> Path:
    """A copy of the TFRecord dataset, to be changed."""
    return Path(shutil.copytree(made / "tfrecord", tmp_path / "dataset"))


def stats_of(bertdata: Program, *arguments: object) -> list[dict]:
    """The datasets of the command's JSON."""
    outcome = bertdata("stats", *arguments, "--json", "--workers=1")
    assert outcome.status == 0, outcome.err
    return json.loads(outcome.out)["datasets"]


def read(shard: Path) -> list[BertExample]:
    with open_reader(str(shard)) as reader:
        return [example for batch in reader.batches(100) for example in batch.examples()]


def plain_numbers(shards: dict[str, list[BertExample]], layout: ShardLayout, mask_id: int) -> dict:
    """The statistics as a person would count them."""
    rows = [example for examples in shards.values() for example in examples]
    lengths = [len(row.ids) for row in rows]
    masks = [len(row.positions) for row in rows]
    kinds = Counter(
        find_mask_kind(row.ids[at], label, mask_id)
        for row in rows
        for at, label in zip(row.positions, row.labels, strict=True)
    )
    tokens = [sum(len(row.ids) for row in examples) for examples in shards.values()]
    return {
        "examples": len(rows),
        "tokens": sum(lengths),
        "padding": fmean(layout.max_seq_length - length for length in lengths) / layout.max_seq_length,
        "length": (min(lengths), fmean(lengths), max(lengths)),
        "lengths": Counter(lengths),
        "full": fmean(length == layout.max_seq_length for length in lengths),
        "first": fmean(row.first_length for row in rows),
        "second": fmean(len(row.ids) - row.first_length for row in rows),
        "masks": (min(masks), fmean(masks), max(masks)),
        "masked": sum(masks) / sum(lengths),
        "filled": fmean(count == layout.max_predictions_per_seq for count in masks),
        "kinds": {"mask": kinds["[MASK]"], "kept": kinds["kept"], "random": kinds["random"]},
        "next": fmean(row.next_label for row in rows),
        "shards": (min(tokens), fmean(tokens), max(tokens), max(tokens) / fmean(tokens) - 1),
    }


def same_numbers(found: dict) -> dict:
    """The same of the command's JSON, whose shares have six decimals."""
    lengths, masks, shards = found["lengths"], found["masks"], found["tokens_per_shard"]
    return {
        "examples": found["examples"],
        "tokens": found["tokens"],
        "padding": near(found["padding_share"]),
        "length": spread(lengths),
        "lengths": make_histogram(lengths["histogram"]),
        "full": near(lengths["full_share"]),
        "first": near(lengths["first_segment_mean"]),
        "second": near(lengths["second_segment_mean"]),
        "masks": spread(masks["per_example"]),
        "masked": near(masks["token_share"]),
        "filled": near(masks["filled_share"]),
        "kinds": {kind: value["count"] for kind, value in masks["kinds"].items()},
        "next": near(found["next_sentences"]["random_share"]),
        "shards": near((*(shards[name] for name in ("min", "mean", "max", "imbalance")),)),
    }


def near(value):
    return pytest.approx(value, abs=1e-6)


def spread(value: dict):
    return near((value["min"], value["mean"], value["max"]))


def make_histogram(value: dict) -> Counter[int]:
    assert value["bin_tokens"] == 1, "with 64 tokens at most each length has its bin"
    return Counter({length: count for length, count in enumerate(value["examples"], 1) if count})


def test_numbers_are_those_of_a_count_example_by_example(bertdata, made, small_vocabulary_file):
    [found] = stats_of(bertdata, made / "tfrecord", "--vocab", small_vocabulary_file)
    vocabulary = parse_vocabulary(small_vocabulary_file.read_bytes(), "small", find_dialect("mlperf"))
    shards = {path.name: read(path) for path in sorted((made / "tfrecord").glob("*.tfrecord"))}
    layout = ShardLayout(max_seq_length=LENGTH, max_predictions_per_seq=PREDICTIONS)
    assert plain_numbers(shards, layout, vocabulary.mask) == same_numbers(found)
    assert found["title"] == "mlperf"
    assert found["masks"]["mask_id"] == {"id": vocabulary.mask, "source": "vocabulary"}
    for shard in found["shard_list"]:
        path = made / "tfrecord" / shard["name"]
        assert shard["bytes"] == path.stat().st_size
        assert shard["examples"] == len(shards[shard["name"]])
        assert shard["tokens"] == sum(len(row.ids) for row in shards[shard["name"]])


@pytest.mark.parametrize("name", case_names("bert"))
def test_numbers_of_golden_cases(name, bertdata, tmp_path):
    case = load_case(name)
    source, vocabulary = make(case, "native")
    rows = list(source.batch(0, len(source)).examples())
    shard = tmp_path / "golden.tfrecord"
    shard.write_bytes(encode_batch(source.batch(0, len(source)), case.settings.layout))
    [found] = stats_of(bertdata, shard, "--vocab", VOCABULARY)
    expected = plain_numbers({"golden": rows}, case.settings.layout, vocabulary.mask)
    del expected["lengths"], found["lengths"]["histogram"]["bin_tokens"]
    counts = found["lengths"]["histogram"]["examples"]
    assert sum(counts) == len(rows)
    found["lengths"]["histogram"] = {"bin_tokens": 1, "examples": counts}
    numbers = same_numbers(found)
    del numbers["lengths"]
    assert expected == numbers


@given(st.lists(examples(largest_id=5), min_size=1, max_size=8), st.integers(0, 5), st.booleans())
def test_kinds_of_masks_are_those_of_show(rows, mask_id, wide):
    """With six ids, [MASK] often stands in the text, where show calls it [MASK] too."""
    counts = ShardCounts(name="small", bytes=0, layout=LAYOUT, own=BERT.counts())
    counts.add(pack(rows[:3], "I" if wide else "H"))
    counts.add(pack(rows[3:], "I" if wide else "H"))
    kinds = Counter(
        find_mask_kind(row.ids[at], label, mask_id)
        for row in rows
        for at, label in zip(row.positions, row.labels, strict=True)
    )
    dataset = FoundDataset(path="nowhere", manifest=None, shards=())
    told = Statistics(dataset, [counts], mask_id).as_json()["masks"]["kinds"]
    assert {kind: found["count"] for kind, found in told.items()} == {
        "mask": kinds["[MASK]"],
        "kept": kinds["kept"],
        "random": kinds["random"],
    }


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(1, 100))
def test_quantiles_are_the_nearest_rank(values, percent):
    expected = sorted(values)[-(-percent * len(values) // 100) - 1]
    assert find_quantile(Counter(values), percent) == expected


def test_all_containers_have_the_same_numbers(bertdata, made):
    found = [stats_of(bertdata, made / kind)[0] for kind in KINDS]
    for one in found:
        del one["path"], one["bytes"], one["shard_list"]
    assert found[0] == found[1] == found[2]


def test_workers_change_nothing(bertdata, made):
    one, two = (bertdata("stats", made / "tfrecord", "--json", f"--workers={n}") for n in (1, 2))
    assert one.out == two.out
    assert one.status == two.status == 0


def test_phases_are_datasets_of_their_own(bertdata, made):
    found = stats_of(bertdata, made / "phases")
    assert [(one["title"], one["max_seq_length"]) for one in found] == [
        ("nvidia phase 1", 128),
        ("nvidia phase 2", 512),
    ]
    text = bertdata("stats", made / "phases", "--workers=1").out
    assert f"{made}/phases/phase1: nvidia phase 1\n" in text
    assert f"{made}/phases/phase2: nvidia phase 2\n" in text


def test_a_manifest_or_one_of_its_shards_may_be_named(bertdata, made):
    whole = stats_of(bertdata, made / "tfrecord")
    assert stats_of(bertdata, made / "tfrecord" / "manifest.json") == whole
    shard = whole[0]["shard_list"][1]
    [alone] = stats_of(bertdata, made / "tfrecord" / shard["name"])
    assert alone["shard_list"] == [shard]
    assert alone["title"] == "mlperf"
    [all_of_it] = stats_of(bertdata, made / "tfrecord" / "part-*")
    assert all_of_it == {**whole[0], "path": str(made / "tfrecord" / "part-*")}


def test_a_shard_is_counted_alone_where_others_of_its_dataset_are_missing(bertdata, dataset):
    first, second, _ = sorted(dataset.glob("*.tfrecord"))
    first.unlink()
    [alone] = stats_of(bertdata, second)
    assert (alone["title"], alone["shards"]) == ("mlperf", 1)
    assert "example 0:" in bertdata("show", second).out


@pytest.mark.parametrize("ending", ["tfrecord", "tfrecords", ""])
def test_another_tools_shards_need_no_manifest(ending, bertdata, made, tmp_path):
    for number, path in enumerate(sorted((made / "tfrecord").glob("*.tfrecord"))):
        shutil.copy(path, tmp_path / f"part-{number}{'.' if ending else ''}{ending}")
    (tmp_path / "notes.txt").write_text("made by another tool\n")
    [other], [ours] = stats_of(bertdata, tmp_path), stats_of(bertdata, without_vocabulary(made, tmp_path))
    assert other.pop("title") == "no manifest"
    in_manifest = ("input_tokens", "unknown_tokens", "unknown_share", "lost_tokens", "lost_share")
    assert [other[key] for key in in_manifest] == [None] * 5
    for one in (other, ours):
        for key in ("title", "path", "shard_list", *in_manifest):
            one.pop(key, None)
    assert other == ours


# --- what is said of [MASK] -----------------------------------------------------------------------


def without_vocabulary(made, place):
    """A dataset that lost the copy of its vocabulary."""
    copy = shutil.copytree(made / "tfrecord", place.with_name(f"{place.name}-copy") / "tfrecord")
    (copy / "vocab.txt").unlink()
    return copy


def test_the_vocabulary_beside_the_manifest_tells_the_id_of_mask(bertdata, made, small_vocabulary_file):
    [known] = stats_of(bertdata, made / "tfrecord", "--vocab", small_vocabulary_file)
    assert stats_of(bertdata, made / "tfrecord") == [known]


def test_without_a_vocabulary_the_id_of_mask_is_taken_from_the_data_and_said_so(
    bertdata, made, small_vocabulary_file, tmp_path
):
    dataset = without_vocabulary(made, tmp_path)
    [known] = stats_of(bertdata, dataset, "--vocab", small_vocabulary_file)
    [taken] = stats_of(bertdata, dataset)
    assert taken["masks"].pop("mask_id") == {"id": known["masks"].pop("mask_id")["id"], "source": "data"}
    assert taken == known
    text = bertdata("stats", dataset, "--workers=1").out
    assert "by the data, it stands at most masked positions; --vocab makes it certain" in text
    text = bertdata("stats", made / "tfrecord", "--vocab", small_vocabulary_file, "--workers=1").out
    assert "by the vocabulary" in text
    assert "by the data" not in text


def test_the_printed_share_of_random_pairs_is_that_of_the_examples(bertdata, made):
    labels = [row.next_label for shard in (made / "tfrecord").glob("part-*") for row in read(shard)]
    text = bertdata("stats", made / "tfrecord", "--workers=1").out
    assert re.search(rf"next sentence +{sum(labels) / len(labels):.2%} random", text)


def test_a_few_masks_tell_no_kinds(bertdata, tmp_path):
    shard = tmp_path / "few.tfrecord"
    shard.write_bytes(encode_batch(pack([plain_row(5), plain_row(6)]), LAYOUT))
    [found] = stats_of(bertdata, shard)
    assert found["masks"]["mask_id"] is None
    assert found["masks"]["kinds"] == {
        "kept": {"count": 2, "share": 0.5, "expected_share": 0.1},
        "changed": {"count": 2, "share": 0.5, "expected_share": 0.9},
    }
    text = bertdata("stats", shard).out
    assert "not known: --vocab tells" in text
    assert "[MASK] or random" in text


def test_another_vocabulary_than_the_datasets_is_refused(bertdata, made):
    outcome = bertdata("stats", made / "tfrecord", "--vocab", VOCABULARY)
    outcome.assert_one_error(2, f"{VOCABULARY}: md5 ", "the shard was made with ")


# --- text and picture -----------------------------------------------------------------------------


def test_the_histogram_in_text_holds_every_example(bertdata, made):
    text = bertdata("stats", made / "tfrecord", "--workers=1").out
    bins = re.findall(r"^ +(\d+) to +(\d+) +([\d,]+)", text, re.MULTILINE)
    [found] = stats_of(bertdata, made / "tfrecord")
    assert sum(int(count.replace(",", "")) for _, _, count in bins) == found["examples"]
    assert [int(first) for first, _, _ in bins] == list(range(1, LENGTH + 1, LENGTH // 16))
    assert bins[-1][1] == str(LENGTH)


def bar_heights(picture: Path) -> list[tuple[int, float]]:
    """(examples that the bar says it stands for, its height in points) of every bar of the SVG."""
    bars = []
    for group in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}g"):
        if match := re.fullmatch(r"bar-0-\d+-(\d+)", group.get("id", "")):
            path = group.find("{http://www.w3.org/2000/svg}path").get("d")
            heights = [float(y) for _, y in re.findall(r"[ML] (\S+) (\S+)", path)]
            bars.append((int(match[1]), max(heights) - min(heights)))
    return bars


def test_the_svg_has_a_bar_for_each_bin_as_high_as_its_examples(bertdata, made, tmp_path):
    [found] = stats_of(bertdata, made / "tfrecord", "--picture", tmp_path / "lengths.svg")
    bars = bar_heights(tmp_path / "lengths.svg")
    assert [count for count, _ in bars] == found["lengths"]["histogram"]["examples"]
    assert sum(count for count, _ in bars) == found["examples"]
    text = (tmp_path / "lengths.svg").read_text()
    (largest, broken), (second, highest) = sorted(bars)[:-3:-1]
    assert largest > 4 * second
    assert f"{100 * largest / found['examples']:.0f} % full" in text
    assert highest < broken < 1.3 * highest
    for count, height in bars:
        if count != largest:
            assert height == pytest.approx(highest * count / second, abs=0.01)
    assert str(made / "tfrecord")[-64:] in text
    assert f"mlperf: {found['examples']:,} examples" in text
    assert "length (tokens, 1 per bar; at most 64)" in text
    assert "<dc:date>" not in text


def test_the_same_statistics_give_the_same_svg_whatever_the_users_settings(bertdata, made, tmp_path):
    import matplotlib

    stats_of(bertdata, made / "phases", "--picture", tmp_path / "a.svg")
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "other", "axes.grid": True}):
        before = dict(matplotlib.rcParams)
        stats_of(bertdata, made / "phases", "--picture", tmp_path / "b.svg")
        assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert len(bar_heights(tmp_path / "a.svg")) == 2 * 64


def test_the_png_is_one(bertdata, made, tmp_path):
    from matplotlib.image import imread

    stats_of(bertdata, made / "tfrecord", "--picture", tmp_path / "lengths.png")
    height, width, colours = imread(tmp_path / "lengths.png").shape
    assert (width, height, colours) == (1050, 540, 4)


def test_matplotlib_is_loaded_for_a_picture_only_and_pyplot_never(made, tmp_path):
    code = (
        "import sys; from bertdata.cli.main import main\n"
        "main(sys.argv[1:]); print(*[m in sys.modules for m in ('matplotlib', 'matplotlib.pyplot')])"
    )
    for options, loaded in (([], "False False"), ([f"--picture={tmp_path}/a.svg"], "True False")):
        command = [sys.executable, "-c", code, "stats", str(made / "tfrecord"), "--workers=1", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == loaded


def test_a_picture_without_matplotlib_names_the_package_before_any_work(
    bertdata, made, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = bertdata("stats", made / "tfrecord", "--picture", tmp_path / "a.svg")
    outcome.assert_one_error(
        2, "--picture needs the package matplotlib", "pip install --editable '.[pictures]'"
    )
    assert bertdata("stats", made / "tfrecord", "--workers=1").status == 0


# --- bad input ------------------------------------------------------------------------------------


def test_paths_that_hold_no_dataset_are_wrong_usage(bertdata, tmp_path):
    bertdata("stats", tmp_path / "missing").assert_one_error(2, "missing: no such file or directory")
    bertdata("stats", tmp_path).assert_one_error(2, f"{tmp_path}: holds no dataset", "manifest.json")
    bertdata("stats", tmp_path, "--picture", "lengths.pdf").assert_one_error(2, "lengths.pdf", ".svg or .png")


def test_an_unfinished_dataset_is_named(bertdata, made, tmp_path):
    shutil.copytree(made / "phases", tmp_path / "phases")
    (tmp_path / "phases" / "phase2" / "manifest.json").rename(tmp_path / "kept.json")
    (tmp_path / "phases" / "phase2" / "unfinished").mkdir()
    (tmp_path / "phases" / "phase2" / "unfinished" / "plan.json").write_text("{}")
    bertdata("stats", tmp_path / "phases").assert_one_error(1, "/phases/phase2: is unfinished")
    bertdata("stats", tmp_path / "phases" / "phase2").assert_one_error(1, "/phase2: is unfinished")
    bertdata("verify-md5", tmp_path / "phases").assert_one_error(1, "/phases/phase2: is unfinished")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_damaged_shard_is_named_with_its_record(workers, bertdata, dataset):
    shard = sorted(dataset.glob("*.tfrecord"))[1]
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    outcome = bertdata("stats", dataset, f"--workers={workers}")
    assert outcome.status == 1
    error = outcome.err.splitlines()[-1]
    assert re.fullmatch(rf"bertdata: error: {re.escape(str(shard))}: record \d+: .*damaged.*", error)
    assert not outcome.out


def test_a_missing_or_exchanged_shard_is_named(bertdata, dataset):
    first, second, _ = sorted(dataset.glob("*.tfrecord"))
    shutil.copy(second, first)
    outcome = bertdata("stats", dataset, "--workers=1")
    assert outcome.status == 1
    assert f"{first}: " in outcome.err
    assert "as manifest.json says" in outcome.err
    first.unlink()
    bertdata("stats", dataset).assert_one_error(1, f"{first}: is missing, manifest.json lists it")


def test_shards_of_different_lengths_are_no_one_dataset(bertdata, tmp_path):
    for name, length in (("a", 12), ("b", 24)):
        layout = ShardLayout(max_seq_length=length, max_predictions_per_seq=3)
        (tmp_path / f"{name}.tfrecord").write_bytes(encode_batch(pack([plain_row(5)]), layout))
    outcome = bertdata("stats", tmp_path, "--workers=1")
    assert outcome.status == 2
    assert "b.tfrecord has max_seq_length 24, a.tfrecord has 12" in outcome.err


def test_a_dataset_without_examples_is_at_fault(bertdata, tmp_path, made):
    from bertdata.shards.containers import make_writer

    with open(tmp_path / "empty.hdf5", "wb") as file:
        make_writer("hdf5", file, LAYOUT).close()
    outcome = bertdata("stats", tmp_path, "--workers=1")
    assert outcome.status == 1
    assert "without any example" in outcome.err
    (tmp_path / "empty.hdf5").unlink()
    (tmp_path / "empty.tfrecord").touch()
    bertdata("stats", tmp_path).assert_one_error(1, "empty.tfrecord: holds no records")


def test_a_dataset_in_an_object_store_has_the_same_numbers(bertdata, made):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.put(str(made / "tfrecord"), "/stats", recursive=True)
    try:
        found = stats_of(bertdata, "memory://stats", "--picture", "memory://stats-lengths.svg")
        assert b"<svg" in memory.cat("/stats-lengths.svg")
    finally:
        memory.rm("/stats", recursive=True)
        memory.rm("/stats-lengths.svg")
    assert found == [{**one, "path": "memory://stats"} for one in stats_of(bertdata, made / "tfrecord")]
