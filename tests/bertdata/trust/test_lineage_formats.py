"""``bertdata lineage --format``: what is printed, for whom, and what is refused."""

import json
import re
import shutil
from pathlib import Path

import datasets
import mlcroissant
import pytest
import yaml
from huggingface_hub import DatasetCard, ModelCard

import bertdata as toolkit
from bertdata.lineages.step import Input, Lineage, LineageFile, Step
from bertdata.trust.cards import EvaluationMeasure, LastEvaluation, ModelFacts, make_model_card
from tests.support.commands import Program
from tests.support.data_chains import make_chain
from tests.support.paths import DUMP


@pytest.fixture
def bertdata(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``shards`` in Parquet, of a dump whose name tells language and licence."""
    place = tmp_path_factory.mktemp("formats")
    dump = Path(shutil.copy(DUMP, place / "dewiki-20240101-pages-articles.xml"))
    make_chain(dump, place, "--format=parquet")
    return place


def test_croissant_is_printed_for_the_file_next_to_the_shards(made: Path, bertdata: Program) -> None:
    outcome = bertdata("lineage", made / "shards", "--format", "croissant")
    assert outcome.status == 0, outcome.err
    (made / "shards" / "croissant.json").write_text(outcome.out)
    examples = toolkit.open_dataset(made / "shards")
    records = mlcroissant.Dataset(jsonld=made / "shards" / "croissant.json").records("examples")
    assert len(list(records)) == len(examples)
    assert bertdata("lineage", made / "shards", "--format", "croissant").out == outcome.out
    assert bertdata("verify-md5", made / "shards").status == 0


def test_in_toto_is_a_line_for_each_step(made: Path, bertdata: Program) -> None:
    outcome = bertdata("lineage", made / "shards", "--format", "in-toto")
    assert outcome.status == 0, outcome.err
    types = [
        json.loads(line)["predicate"]["buildDefinition"]["buildType"] for line in outcome.out.splitlines()
    ]
    assert types == ["urn:bertdata:step:extract", "urn:bertdata:step:segment", "urn:bertdata:step:create"]


def test_the_card_is_parsed_by_the_hubs_library_and_keeps_the_data_loadable(
    made: Path, bertdata: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    outcome = bertdata("lineage", made / "shards", "--format", "card")
    assert outcome.status == 0, outcome.err
    card = DatasetCard(outcome.out)
    assert card.data.license == ["cc-by-sa-4.0", "gfdl"]
    assert card.data.language == ["de"]
    assert "| dump | dewiki-20240101-pages-articles.xml |" in card.text
    copy = Path(shutil.copytree(made / "shards", tmp_path / "shards"))
    (copy / "README.md").write_text(outcome.out)
    loaded = datasets.load_dataset(str(copy), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == len(toolkit.open_dataset(copy))
    assert toolkit.verify(copy).sound


def test_a_damaged_record_is_told_and_the_exit_status_is_1(
    made: Path, bertdata: Program, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(made / "shards", tmp_path / "shards"))
    (copy / "sources" / "parts.json").write_text("{}")
    outcome = bertdata("lineage", copy, "--format", "in-toto")
    assert outcome.status == 1
    assert len(outcome.out.splitlines()) == 1  # the last step
    assert "parts.json" in outcome.err


def test_what_cannot_be_printed_is_refused_in_one_line(made: Path, bertdata: Program, tmp_path: Path) -> None:
    for name in ("croissant", "card"):
        words = ("lineage", made / "results", "--format", name)
        bertdata(*words).assert_one_error(
            2, "is the manifest of a directory of text, expected one of a dataset"
        )
    assert bertdata("lineage", made / "shards", "--json", "--format", "card").status == 2
    bertdata("lineage", tmp_path / "none", "--format", "card").assert_one_error(2, "no such file")


def test_a_file_that_two_steps_have_read_is_counted_once() -> None:
    files = tuple(LineageFile(name=f"{number}.txt", md5=f"{number:032}") for number in range(60))
    inputs = (Input(role="text", files=files, source=True),)
    steps = tuple(Step(name="segment", record=one, settings={}, inputs=inputs) for one in "ab")
    facts = ModelFacts(name="model", pipeline="fill-mask", settings={})
    card = make_model_card(Lineage(path="", results=steps), facts)
    assert card.count(".txt | ") == 50
    assert "and 10 more, which the manifests list." in card


@pytest.mark.parametrize("name", ["model 😀", "a\\b", 'quoted "é"', "two\nlines\x7f\u2028"])
def test_the_heading_of_a_card_keeps_every_character_of_a_name(name: str) -> None:
    evaluation = LastEvaluation("data", 2, [EvaluationMeasure("loss", "loss", 1e-05)])
    facts = ModelFacts(name=name, pipeline="fill-mask", settings={}, evaluation=evaluation)
    heading = yaml.safe_load(make_model_card(Lineage(path="", results=()), facts).split("---\n")[1])
    assert heading["model-index"][0]["name"] == name
    assert heading["model-index"][0]["results"][0]["metrics"][0]["value"] == 1e-05


def test_values_cannot_break_out_of_a_cards_heading_and_tables() -> None:
    evil = 'a\n---\nlicense: "mit"\n| b |'
    measures = [EvaluationMeasure("loss", evil, 1e-07), EvaluationMeasure("accuracy", "accuracy", 0.5)]
    facts = ModelFacts(
        name=evil,
        pipeline="fill-mask",
        settings={evil: evil},
        base_model="",
        evaluation=LastEvaluation(evil, 3, measures),
    )
    text = make_model_card(Lineage(path="", results=()), facts)
    card = ModelCard(text)
    assert card.data.license is None
    assert card.data.model_name == evil
    assert [result.metric_value for result in card.data.eval_results] == [1e-07, 0.5]
    assert "license" not in text.partition("\n---\n")[0].replace(json.dumps(evil)[1:-1], "")
    rows = [line for line in text.splitlines() if line.startswith("| a ---")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)
    assert len(rows) == 2
