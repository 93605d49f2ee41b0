"""``bertdata report``: the numbers of the page are those of the data, and a fault does not hide them."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from bertdata.cli.main import main
from bertdata.config.dialects import find_dialect
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.examples.columns import convert_to_arrays
from bertdata.packing.longest_first import pack_longest_first
from bertdata.records import ShardLayout
from bertdata.reports.page.blocks import MarkedWord
from bertdata.reports.sample import KeptExample
from bertdata.reports.sampled_tokens import SampledTokens, restore_original_ids
from bertdata.reports.sections.passages import WordReader
from bertdata.reports.sections.savings import count_positions
from bertdata.shards.containers import open_reader
from bertdata.tokens.vocabulary import parse_vocabulary
from tests.support.commands import SMALL
from tests.support.plain_objective import NAME as PLAIN
from tests.support.small_shards import plain_row

KINDS = {
    "bert": ["--format=tfrecord"],
    "mlm": ["--objective=mlm", "--format=hdf5"],
    "sop": ["--objective=sop", "--format=parquet"],
    "span": ["--objective=span", "--format=parquet"],
    "electra": ["--objective=electra", "--max-seq-length=64", "--workers=1"],
    "unmasked": ["--objective=mlm", "--no-masks", "--format=mds"],
    "own": [f"--objective={PLAIN}", "--max-seq-length=64", "--workers=1"],
}
ALWAYS = [
    "Provenance",
    "Settings",
    "Lengths",
    "Packing and bins",
    "Unknown words and word lengths",
]
ALWAYS += ["Left out", "Balance of shards", "Frequent and rare tokens", "Examples"]
SOMETIMES = {
    "bert": ["Masks", "Next sentences"],
    "mlm": ["Masks"],
    "sop": ["Masks", "Sentence order"],
    "span": ["Masks", "Spans"],
    "electra": ["One segment"],
    "unmasked": [],
    "own": [],
}


@pytest.fixture(scope="module")
def made(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """The sample corpus as a dataset of each objective, and packed."""
    place = tmp_path_factory.mktemp("reported")
    for name, options in KINDS.items():
        settings = options if name in ("electra", "own") else [*SMALL, *options]
        command = ["create", *map(str, corpus), "--vocab", str(small_vocabulary_file)]
        assert main([*command, "--output", str(place / name), *settings]) == 0
    assert main(["pack", str(place / "bert"), "--output", str(place / "packed"), "--workers=1"]) == 0
    return place


@pytest.fixture
def report(bertdata, tmp_path):
    """The text of the page on some datasets, and the command's outcome."""

    def run(*arguments: object, status: int = 0):
        outcome = bertdata("report", *arguments, "--output", tmp_path / "report.html")
        assert outcome.status == status, outcome.err
        return (tmp_path / "report.html").read_text(encoding="utf-8"), outcome

    return run


def sections(page: str) -> list[str]:
    return re.findall(r'<h2 id="[^"]*">([^<]*)</h2>', page)


def rows(page: str, caption: str) -> dict[str, list[str]]:
    """The raw values of the table with the caption, by the first column."""
    table = next(
        one for one in re.findall(r"<table.*?</table>", page, re.DOTALL) if f">{caption}</caption>" in one
    )
    found = {}
    for row in re.findall(r"<tr[^>]*><th scope=\"row\".*?</tr>", table):
        name = re.search(r"<bdi>(.*?)</bdi>", row)[1]
        cells = re.findall(r'<td[^>]*?(?:data-value="([^"]*)")?>(?:<bdi>)?([^<]*)', row)
        found[name] = [raw or text for raw, text in cells]
    return found


@pytest.mark.parametrize("name", KINDS)
def test_every_objective_and_container_has_the_sections_of_its_data(made, report, name):
    own = ["--objective", PLAIN] if name == "own" else []
    page, outcome = report(made / name, *own)
    found = sections(page)
    assert sorted(found) == sorted([*ALWAYS, *SOMETIMES[name]])
    assert outcome.out.startswith("wrote ")
    assert page.count("<article") >= 20
    assert len(page) < 3_000_000


def test_no_piece_is_glued_to_a_word_or_letter_that_it_does_not_continue():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "house", "##boat", "ship"]
    vocabulary = parse_vocabulary("\n".join(words).encode(), "small", find_dialect("mlperf"))
    example = BertExample(
        ids=[2, 5, 6, 3, 6, 6, 4, 3], first_length=4, positions=[5, 6], labels=[7, 6], next_label=0
    )
    layout = ShardLayout(max_seq_length=8, max_predictions_per_seq=2)
    passage = WordReader(vocabulary).make_passage(KeptExample("one", example, BertBatch, layout))
    end = MarkedWord("[SEP]", "special")
    assert passage.parts == (
        ("A", (MarkedWord("[CLS]", "special"), MarkedWord("houseboat"), end)),
        (
            "B",
            (
                MarkedWord("boat"),  # the segment begins inside a word
                MarkedWord("boat", "random", "ship"),  # a piece in the place of a whole word
                MarkedWord("[MASK]", "masked", "boat", joined=True),  # a masked piece continues its word
                end,
            ),
        ),
    )


def test_packed_rows_have_their_own_numbers_and_nothing_to_save(made, report):
    page, _ = report(made / "packed")
    assert "Packing and bins" not in sections(page)
    facts = rows(page, "Lengths")
    manifest = json.loads((made / "packed" / "manifest.json").read_text())
    assert facts["packed rows"] == [str(sum(shard["rows"] for shard in manifest["shards"]))]
    assert "Packed rows by their examples" in page


def test_the_numbers_are_those_of_stats(made, report, bertdata):
    page, _ = report(made / "bert")
    [found] = json.loads(bertdata("stats", made / "bert", "--json", "--workers=1").out)["datasets"]
    lengths, masks = rows(page, "Lengths"), rows(page, "Masks")
    assert lengths["examples"] == [str(found["examples"])]
    assert lengths["tokens"] == [str(found["tokens"])]
    padding = float(lengths["padding (% of positions)"][0])
    assert padding == pytest.approx(100 * found["padding_share"], abs=1e-3)
    assert masks["masked positions"] == [str(found["masks"]["masked_tokens"])]
    for kind, label in (("mask", "[MASK]"), ("kept", "kept"), ("random", "random")):
        assert masks[f"{label} (masked positions)"] == [str(found["masks"]["kinds"][kind]["count"])]
        expected = 100 * found["masks"]["kinds"][kind]["expected_share"]
        assert [float(one) for one in masks[f"{label}, expected (%)"]] == [expected]
    pairs = rows(page, "Next sentences")
    assert pairs["random"] == [str(found["next_sentences"]["random"])]
    assert rows(page, "Balance of shards")["shards"] == [str(found["shards"])]
    assert "of all" in page
    assert "a sample of" not in page


def test_a_sample_is_said_to_be_one_and_exact_numbers_stay_exact(made, report):
    whole, _ = report(made / "bert")
    sampled, _ = report(made / "bert", "--sample", 30)
    assert re.search(r"a sample of 30 of [\d,]+ examples: the first 10 of each of 3 of 3 shards", sampled)
    for caption in ("Lengths", "Balance of shards", "Packing and bins"):
        assert rows(sampled, caption) == rows(whole, caption)
    assert rows(sampled, "Masks") != rows(whole, "Masks")


def test_tokens_are_counted_as_they_were_before_masking(made, small_vocabulary_file):
    vocabulary = parse_vocabulary(small_vocabulary_file.read_bytes(), "small", find_dialect("mlperf"))
    counts, expected, words = SampledTokens(vocabulary), Counter(), Counter()
    with open_reader(str(sorted((made / "bert").glob("*.tfrecord"))[0])) as reader:
        for batch in reader.batches(50):
            counts.add(convert_to_arrays(batch))
            for example in batch.examples():
                ids = list(example.ids)
                for place, label in zip(example.positions, example.labels, strict=True):
                    ids[place] = label
                expected.update(ids)
                text = " ".join(vocabulary.words[one] for one in ids).replace(" ##", "/")
                words.update(
                    word.count("/") + 1 for word in text.split() if word[0] != "[" or "[UNK]" in word
                )
    assert counts.ids == expected
    # pieces behind a special token, where an example begins within a word, are no word of their own here
    assert sum(counts.words_by_tokens.values()) == pytest.approx(words.total(), rel=0.01)
    assert counts.words_by_tokens[1] == pytest.approx(words[1], rel=0.01)


def test_original_ids_put_back_what_was_masked():
    batch = BertBatch.of([plain_row(5), plain_row(6)], wide=False)
    assert restore_original_ids(convert_to_arrays(batch)).tolist() == [
        101,
        5,
        9,
        102,
        7,
        102,
        101,
        6,
        9,
        102,
        7,
        102,
    ]


def test_savings_are_those_of_rows_counted_one_by_one():
    lengths = Counter({10: 3, 20: 2, 33: 1, 64: 4})
    found = list(count_positions(lengths, 64).values())
    histogram = __import__("numpy").bincount(list(lengths.elements()), minlength=65)
    packed = pack_longest_first(histogram, 3).rows * 64
    assert found == [10 * 64, 3 * 16 + 2 * 32 + 48 + 4 * 64, packed, 30 + 40 + 33 + 256]


def test_two_datasets_stand_side_by_side(made, report):
    page, _ = report(made / "bert", made / "mlm")
    assert "<title>bert and mlm</title>" in page
    assert rows(page, "Lengths").keys() == rows(report(made / "bert")[0], "Lengths").keys()
    assert all(len(values) == 3 for values in rows(page, "Lengths").values())
    assert rows(page, "Settings")["name"][1:4] == ["bert", "mlm", "differs"]
    assert rows(page, "Settings")["random_seed"][3] == "same"
    marked = re.findall(r'<tr class="differs"><th scope="row"[^>]*><bdi>([^<]*)', page)
    assert "name" in marked
    assert "random_seed" not in marked


def test_datasets_side_by_side_have_equal_axes(made, report, tmp_path):
    """The masked dataset has rows of 64 tokens here, the other one has rows of 32."""
    page, _ = report(made / "electra", made / "bert")
    ticks = [
        re.findall(r">([0-9,.]+)</text>", drawing)
        for drawing in re.findall(r"Examples by length</figcaption>.*?</svg>", page, re.DOTALL)
    ]
    assert len(ticks) == 2
    assert ticks[0] == ticks[1]


def test_a_dataset_without_masks_says_nothing_of_masks(made, report):
    page, _ = report(made / "unmasked")
    settings = rows(page, "Settings")
    assert settings["masks"][1] == "no"
    assert not {"masked_lm_prob", "mask_share", "max_predictions_per_seq"} & settings.keys()
    assert "0 masks" not in page
    assert "Masked tokens" not in page
    both, _ = report(made / "bert", made / "unmasked")
    assert "unmasked has no masks." in both
    assert len(next(iter(rows(both, "Masks").values()))) == 1


def test_what_was_left_out_is_listed_with_its_reason(bertdata, report, small_vocabulary_file, tmp_path):
    texts = [
        "A house stands here. It is old.",
        "Two ships sail. They are far.",
        "A house stands here. It is old.",
    ]
    lines = [json.dumps({"text": text}) for text in texts] + ['{"text": ', json.dumps({"text": ""})]
    (tmp_path / "messy.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    parts, shards = tmp_path / "parts", tmp_path / "shards"
    options = ("--sentences", "lines", "--dedup", "exact", "--skip-bad-records")
    assert bertdata("segment", tmp_path / "messy.jsonl", "--output", parts, *options).status == 0
    made = bertdata(
        "create", parts, "--output", shards, "--vocab", small_vocabulary_file, *SMALL, "--objective=mlm"
    )
    assert made.status == 0, made.err
    page, _ = report(shards)
    found = rows(page, "What was left out, and why")
    assert found["records read"] == ["5"]
    assert found["records that are not readable (malformed)"] == ["1"]
    assert found["records without text"] == ["1"]
    assert found["records that repeat an earlier record"] == ["1"]
    assert found["records left out in all"] == ["3"]
    assert found["records left out in all (%)"] == ["60.0"]
    assert "records that are too long" not in found
    assert "removed.jsonl beside the parts" in page


def test_phases_of_one_directory_are_two_datasets(corpus, small_vocabulary_file, report, tmp_path):
    command = ["create", str(corpus[0]), "--vocab", str(small_vocabulary_file), "--recipe=nvidia"]
    assert main([*command, "--output", str(tmp_path / "both"), "--dupe-factor=1", "--workers=1"]) == 0
    assert "<title>phase1 and phase2</title>" in report(tmp_path / "both")[0]


def test_faults_stand_on_top_and_the_rest_is_still_told(made, report, tmp_path):
    dataset = Path(shutil.copytree(made / "bert", tmp_path / "damaged"))
    first, second, _ = sorted(dataset.glob("*.tfrecord"))
    second.unlink()
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(bytes(data))
    page, outcome = report(dataset, status=1)
    top = page[page.index('<section id="faults"') : page.index('<section id="provenance"')]
    assert f"{second}: missing" in top
    assert f"{first}: wrong md5" in top
    assert outcome.out.endswith("with 2 faults on top\n")
    assert len(outcome.err.splitlines()) == 2
    assert f"{second}: missing" in outcome.err
    assert "Examples" in sections(page)


def test_a_dataset_that_cannot_be_read_at_all_still_has_its_provenance(made, report, tmp_path):
    dataset = Path(shutil.copytree(made / "bert", tmp_path / "broken"))
    for shard in dataset.glob("*.tfrecord"):
        shard.write_bytes(b"x" * shard.stat().st_size)
    page, _ = report(dataset, status=1)
    assert sections(page) == [
        "Faults of the files",
        "Provenance",
        "Left out",
        "Settings",
        "Balance of shards",
    ]


def test_a_manifest_without_shards_is_a_page_with_faults(made, report, tmp_path):
    dataset = Path(shutil.copytree(made / "bert", tmp_path / "emptied"))
    manifest = dataset / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "shards": []}))
    page, _ = report(dataset, status=1)
    assert sections(page) == ["Faults of the files", "Provenance", "Left out", "Settings"]


def test_another_tools_shards_need_no_manifest(made, report, tmp_path):
    shard = next((made / "bert").glob("*.tfrecord"))
    shutil.copy(shard, tmp_path / "a.tfrecord")
    page, _ = report(tmp_path / "a.tfrecord")
    assert "none: its steps are not known" in page
    assert "Settings" not in sections(page)
    with open_reader(str(shard)) as reader:
        assert rows(page, "Lengths")["examples"] == [str(len(reader))]


def test_the_chain_is_drawn_from_the_dump_on(made, report):
    page, _ = report(made / "packed")
    steps = re.findall(r"<h3 dir=\"auto\">([^<]*)</h3>\n<dl>", page)
    assert steps == ["source", "dataset", "dataset"]


def test_no_verify_says_so(made, report):
    page, _ = report(made / "bert", "--no-verify")
    assert "not verified: it was not asked for" in page


def test_hostile_names_of_directories_are_text(made, report, tmp_path):
    name = "<script>alert(1)</script>\x1b[31m\u202e'\""
    dataset = Path(shutil.copytree(made / "bert", tmp_path / name.replace("/", "_")))
    page, outcome = report(dataset)
    assert page.count("<script") == 1
    assert "\x1b" not in page + outcome.out
    assert "\u202e" not in page + outcome.out


def test_wrong_usage_is_one_line(bertdata, made, tmp_path):
    bertdata("report", tmp_path / "none", "--output", "a.html").assert_one_error(2, "none: no such file")
    bertdata("report", made / "bert", "--output", "a.pdf").assert_one_error(2, "a.pdf", ".html")
    bertdata("report", made / "bert").assert_one_error(2, "--output")


def test_the_same_dataset_gives_the_same_bytes(made, report):
    assert report(made / "bert")[0] == report(made / "bert")[0]
