"""Examples without masks: those of the golden cases with their labels put back, in every container."""

import json

import pytest

from bertdata.cli.main import main
from bertdata.config.settings import FORMATS
from bertdata.examples.bert.batch import BertExample
from bertdata.shards.containers import open_reader
from golden.cases import GOLDEN, case_names, load_case, make
from tests.support.example_flags import create_flags

CASES = [name for name in case_names("bert") if not load_case(name).settings.remask]


def restored(example: BertExample) -> BertExample:
    ids = list(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        ids[position] = label
    return BertExample(
        ids=ids, first_length=example.first_length, positions=[], labels=[], next_label=example.next_label
    )


def golden_examples(name: str) -> list[BertExample]:
    """The case's examples: test_golden holds them to what the original program made."""
    examples, _ = make(load_case(name), "native")
    return list(examples.batch(0, len(examples)).examples())


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", CASES)
def test_they_are_the_originals_with_the_labels_put_back(name, engine):
    case = load_case(name)
    unmasked = case.settings.with_changes(masks=False)
    examples, _ = make(type(case)(case.folder, case.inputs, unmasked), engine)
    assert examples.masked == 0
    assert list(examples.batch(0, len(examples)).examples()) == [*map(restored, golden_examples(name))]


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("container", [one for one in FORMATS if one != "mds"])
def test_every_container_holds_them(container, engine, tmp_path, capsys):
    case = load_case("google")
    settings = case.settings.with_changes(masks=False, format=container)
    places = ["--output", str(tmp_path / "out"), "--vocab", str(GOLDEN / "vocab.txt"), "--workers", "1"]
    flags = [*create_flags(settings), "--engine", engine]
    assert main(["create", *[str(GOLDEN / part) for part in case.inputs], *places, *flags]) == 0
    shard = tmp_path / "out" / f"odd.txt.{container}"
    with open_reader(str(shard), engine) as reader:
        assert reader.layout == settings.layout
        found = [example for batch in reader.batches(7) for example in batch.examples()]
    assert found == [*map(restored, golden_examples("google"))]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["settings"]["objective"]["masks"] is False
    assert manifest["settings"]["objective"]["max_predictions_per_seq"] == 20
    assert manifest["totals"]["masked_tokens"] == 0
    capsys.readouterr()
    assert main(["verify-md5", str(tmp_path / "out"), "--content"]) == 0
    assert main(["stats", str(tmp_path / "out")]) == 0
    assert "nothing: masks are to be drawn when examples are loaded" in capsys.readouterr().out


def test_a_manifest_of_masked_examples_does_not_tell_of_masks():
    case = load_case("google")
    assert "masks" not in case.settings.as_json()
    assert case.settings.with_changes(masks=False).as_json()["masks"] is False


@pytest.mark.parametrize("first", [["--no-masks"], []])
def test_a_directory_is_either_masked_or_not(first, tmp_path, capsys):
    words = ["create", str(GOLDEN / "single.txt"), "--output", str(tmp_path / "out")]
    words += ["--vocab", str(GOLDEN / "vocab.txt"), "--workers", "1", "--recipe", "google"]
    second = [] if first else ["--no-masks"]
    assert main([*words, *first]) == 0
    assert main([*words, *second]) == 2
    values = ("False", "None") if first else ("None", "False")
    assert f"was made with other settings: masks {values[0]}, now {values[1]}" in capsys.readouterr().err
