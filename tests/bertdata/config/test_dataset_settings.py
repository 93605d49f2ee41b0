"""Settings in four records: where each stands, and what the schema knows of it."""

from dataclasses import dataclass, fields
from typing import Any

import pytest

from bertdata.config.dataset_settings import DatasetSettings, make_dataset_settings
from bertdata.config.declared import derive_schemas, setting
from bertdata.config.manifest_versions import compute_settings_digest
from bertdata.config.settings import ExampleSettings
from bertdata.errors import SettingsError
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.records import Vocabulary
from schemas import load_schema
from schemas.faults import faults

TOKENIZER = {"dialect", "lower_case", "keep_accents", "chinese_words"}
CONTAINER = {"format", "bin_size", "remask"}


@pytest.fixture
def vocabulary() -> Vocabulary:
    tokens: Any = {"words": ["[PAD]"] * 5, "continues_word": bytes(5), "replacements": (0, 1, 2)}
    return Vocabulary(name="vocab.txt", md5="0" * 32, cls=1, sep=2, mask=3, **tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnSettings(ExampleSettings):
    """Settings of an objective of one's own, with another default and without ``setting``."""

    dialect: str = "google"
    labels: tuple[str, ...] = ("yes", "no")


ALL = {
    "bert": BertSettings(
        bin_size=64,
        masks=False,
        keep_accents=True,
        chinese_words=True,
        mask_share=1.0,
        random_share=0.0,
        kept_share=0.0,
        max_predictions_per_seq=9,
    ),
    "mlm": MlmSettings(bin_size=64, masks=False, keep_accents=True, chinese_words=True),
    "own": OwnSettings(objective="own", bin_size=64, keep_accents=True, chinese_words=True),
}


@pytest.mark.parametrize("name", ALL)
def test_each_setting_stands_in_the_one_record_of_its_meaning(name: str, vocabulary: Vocabulary) -> None:
    settings = ALL[name]
    records = make_dataset_settings(settings, vocabulary)
    names = {item.name for item in fields(settings)}
    assert set(records.tokenizer) == {"kind", "vocabulary", *TOKENIZER}
    assert set(records.container) == CONTAINER & names
    assert set(records.objective) == {"name", *names - {"objective"} - TOKENIZER - CONTAINER}
    assert records.text == {}
    assert records.tokenizer["vocabulary"] == {"md5": "0" * 32, "tokens": 3}
    assert records.objective["name"] == name


def test_a_shuffle_is_a_setting_of_the_container(vocabulary: Vocabulary) -> None:
    plain, shuffled = (
        make_dataset_settings(BertSettings(), vocabulary),
        make_dataset_settings(BertSettings(), vocabulary, 7),
    )
    assert plain.num_shards is None
    assert shuffled.num_shards == 7
    assert shuffled.container == {**plain.container, "shuffle": "global", "num_shards": 7}
    assert plain.by_name == shuffled.by_name == {"objective": "bert"} | BertSettings().as_json()


def test_tuples_are_the_lists_that_a_manifest_gives_back(vocabulary: Vocabulary) -> None:
    assert make_dataset_settings(ALL["own"], vocabulary).objective["labels"] == ["yes", "no"]


def test_the_schema_declares_settings_in_their_records() -> None:
    schema = load_schema("manifest")["$defs"]
    assert {"max_seq_length", "random_seed"} <= set(schema["objective"]["properties"])
    assert set(schema["wordpiece_vocabulary"]["properties"]) >= TOKENIZER
    assert set(schema["container"]["properties"]) >= CONTAINER


def objective_faults(record: dict[str, Any]) -> list[str]:
    schema = load_schema("manifest")
    return [fault.message for fault in faults(record, schema["$defs"]["objective"])]


@pytest.mark.parametrize("name", ALL)
def test_the_record_of_an_objective_fits_the_schema(name: str, vocabulary: Vocabulary) -> None:
    assert objective_faults(make_dataset_settings(ALL[name], vocabulary).objective) == []


@pytest.mark.parametrize("name", ["bert", "mlm"])
def test_the_settings_of_the_packages_objectives_are_required_and_typed(
    name: str, vocabulary: Vocabulary
) -> None:
    whole = make_dataset_settings(ALL[name], vocabulary).objective
    for setting_name, value in whole.items():
        wrong = {**whole, setting_name: [value]}
        assert objective_faults(wrong), setting_name
    missing = {item for item in whole if objective_faults({k: v for k, v in whole.items() if k != item})}
    optional = {"masks"} if name == "mlm" else {"masks", "mask_share", "random_share", "kept_share"}
    assert missing - {"name"} == set(whole) - optional - {"name"}


COMMON = {"max_seq_length": 128, "random_seed": 1}
FILES = {"max_seq_length": 128, "unverified": True}


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({"name": "own:X", **COMMON, "masks": "three", "blocks": 7}, None),
        ({"name": "own:X", **FILES}, None),
        ({"name": "own:X", "max_seq_length": 128}, "'random_seed' is a required property"),
        ({"name": "squad", **COMMON}, None),
        ({"name": "squad", **FILES}, None),
        ({"name": "bert", **FILES}, "'max_predictions_per_seq' is a required property"),
        ({**FILES}, "'max_predictions_per_seq' is a required property"),
        ({"name": "mlm", **FILES, "max_predictions_per_seq": 0}, "0 is less than the minimum of 1"),
        ({"name": "mlm", **FILES, "max_predictions_per_seq": 20}, None),
    ],
)
def test_the_schema_asks_of_an_objective_what_it_declares(record: dict[str, Any], fault: str | None) -> None:
    assert objective_faults(record) == ([] if fault is None else [fault])


def test_the_schema_has_the_choices_that_are_declared() -> None:
    schema = load_schema("manifest")["$defs"]
    declared = derive_schemas(ExampleSettings)
    vocabulary = schema["wordpiece_vocabulary"]["properties"]
    assert vocabulary["dialect"]["enum"] == list(declared["dialect"]["enum"])
    formats = schema["container"]["properties"]["format"]["enum"]
    assert formats == [*declared["format"]["enum"], "nvidia-mlperf", "lddl", "arrow", "fairseq"]


@pytest.mark.parametrize("name", ["name", "kind", "vocabulary", "shuffle", "num_shards", "inputs", "recipe"])
def test_a_setting_cannot_have_a_name_that_means_something_else(name: str, vocabulary: Vocabulary) -> None:
    kind = dataclass(frozen=True, kw_only=True)(
        type("Named", (ExampleSettings,), {"__annotations__": {name: int}, name: setting(1, "a number")})
    )
    with pytest.raises(SettingsError, match=f"objective own: a setting cannot be called {name}; give it an"):
        make_dataset_settings(kind(objective="own"), vocabulary)


CHANGES = {
    "text": {"punkt": None},
    "tokenizer": {"lower_case": False},
    "objective": {"random_seed": 1},
    "container": {"format": "hdf5"},
}


@pytest.mark.parametrize("record", CHANGES)
def test_the_digest_is_of_all_four_records_and_of_no_order(record: str, vocabulary: Vocabulary) -> None:
    records = make_dataset_settings(BertSettings(), vocabulary).as_json()
    assert list(records) == list(CHANGES)
    digest = compute_settings_digest(records)
    turned = {name: dict(reversed(records[name].items())) for name in reversed(records)}
    assert (
        compute_settings_digest(DatasetSettings(**turned).as_json())
        == compute_settings_digest(turned)
        == digest
    )
    assert compute_settings_digest({**records, record: {**records[record], **CHANGES[record]}}) != digest
