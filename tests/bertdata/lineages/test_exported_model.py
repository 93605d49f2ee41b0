"""Records of exported models: what flags of the export named, and records of versions that did not say it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bertdata.errors import MissingInputError, SettingsError
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.exported_model import LINEAGE_NAME, make_export_record
from bertdata.lineages.read import read_lineage
from bertdata.lineages.rebuild_plan import plan_rebuild
from bertdata.lineages.step import Input, LineageFile
from bertdata.lineages.weights_record import make_weights_record
from tests.support.lineages import compute_md5

SETTINGS = {"to": "huggingface", "moments": True, "task": None}
BERT_BASE_UNCASED = "64800d5d8528ce344256daf115d4965e"  # as published


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """``sources`` with the files that an export has read, and ``model`` with what it has written."""
    for name in ("sources", "model"):
        (tmp_path / name).mkdir()
    for name in ("weights.pt", "mine.txt", "mine.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "sources" / name).write_text(f"contents of {name}\n")
    (tmp_path / "model/model.safetensors").write_bytes(b"weights")
    return tmp_path


def describe(path: Path) -> LineageFile:
    return LineageFile(name=path.name, bytes=path.stat().st_size, md5=compute_md5(path))


def write_record(place: Path, inputs: Sequence[Input]) -> None:
    documents = RecordDocuments()
    source = documents.add(make_weights_record([str(place / "sources/weights.pt")]))
    record = make_export_record(
        str(place / "model"),
        ["model.safetensors"],
        settings=SETTINGS,
        versions={},
        source=source,
        documents=documents,
        inputs=inputs,
    )
    (place / "model" / LINEAGE_NAME).write_bytes(record)


def plan_words(place: Path, output: str = "again") -> list[str]:
    """The flags of the command that exports the model again, after those that every export has."""
    plan = plan_rebuild(read_lineage(str(place / "model")), [str(place / "sources")], output)
    words = list(plan.commands[-1].words)
    assert words[3:8] == ["convert", f"{place}/sources/weights.pt", f"{output}/model", "--to", "huggingface"]
    return words[8:]


def test_a_record_of_an_earlier_version_is_read_and_rebuilt_without_the_flags(place):
    write_record(place, [])
    record = json.loads((place / "model" / LINEAGE_NAME).read_bytes())
    assert record.keys() == {"format", "settings", "versions", "source", "files", "documents"}
    lineage = read_lineage(str(place / "model"))
    assert lineage.faults == []
    assert [one.role for one in lineage.results[0].inputs] == ["checkpoint"]
    assert plan_words(place) == []


def test_a_vocabulary_and_a_model_file_are_found_by_their_md5s(place):
    vocab, config = (describe(place / "sources" / name) for name in ("mine.txt", "mine.json"))
    write_record(
        place, [Input(role="vocabulary", files=(vocab,)), Input(role="model configuration", files=(config,))]
    )
    (place / "sources/mine.json").rename(place / "sources/renamed.json")
    [step] = read_lineage(str(place / "model")).results
    assert [(one.role, one.files) for one in step.inputs[1:]] == [
        ("vocabulary", (vocab,)),
        ("model configuration", (config,)),
    ]
    sources = place / "sources"
    expected = ["--vocab", f"{sources}/mine.txt", "--model-config", f"{sources}/renamed.json"]
    assert plan_words(place) == expected
    (sources / "mine.txt").unlink()
    with pytest.raises(MissingInputError, match=r"the vocabulary mine\.txt of python -m trainer convert"):
        plan_words(place)


def test_a_published_vocabulary_needs_no_source(place):
    file = LineageFile(name="bert-base-uncased", bytes=231508, md5=BERT_BASE_UNCASED)
    write_record(place, [Input(role="vocabulary", files=(file,))])
    assert plan_words(place) == ["--vocab", "bert-base-uncased"]


def test_a_file_that_only_has_the_name_of_a_published_vocabulary_is_a_source(place):
    (place / "sources/bert-base-uncased").write_text("mine\n")
    write_record(place, [Input(role="vocabulary", files=(describe(place / "sources/bert-base-uncased"),))])
    assert plan_words(place) == ["--vocab", f"{place}/sources/bert-base-uncased"]


@pytest.mark.parametrize(("role", "inside"), [("tokenizer.json", "/tokenizer.json"), ("tokeniser", "")])
def test_files_of_a_tokeniser_are_linked_into_a_directory_of_their_own(place, role, inside):
    names = ("tokenizer.json", "tokenizer_config.json")
    files = tuple(describe(place / "sources" / name) for name in names)
    write_record(place, [Input(role=role, files=files)])
    (place / "sources/special_tokens_map.json").write_text("{}")  # the export has not read it
    assert plan_words(place) == ["--vocab", f"again/sources/tokeniser-1{inside}"]
    plan = plan_rebuild(read_lineage(str(place / "model")), [str(place / "sources")], "again")
    assert [(link.source, link.path) for link in plan.links] == [
        (f"{place}/sources/{name}", f"again/sources/tokeniser-1/{name}") for name in names
    ]
    with pytest.raises(SettingsError, match="must be on this machine"):
        plan_words(place, "memory://again")
