"""A model to be published: its card for the hub, its lineage for in-toto, and its signature."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import model_signing.verifying
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.json_format import ParseDict
from huggingface_hub import ModelCard, ModelCardData
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage

import bertdata
from bertdata.lineages.read import read_lineage
from bertdata.tokens.files import VocabularyFile
from bertdata.trust.in_toto import make_statements
from tests.support.exported_models import export
from tests.support.paths import GOLDEN
from tests.support.training_runs import words
from trainer.checkpoints.formats.model_card import write_model_card
from trainer.checkpoints.source import open_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def place(training_set, tmp_path_factory) -> Path:
    """``run`` of four updates with an evaluation after each second one, and ``model``, its export."""
    from trainer.__main__ import main

    place = tmp_path_factory.mktemp("card")
    data = f"--eval-data={training_set}"
    given = words(training_set, place / "run", data, "--steps=4", "--checkpoint-every=2", "--eval-every=2")
    assert main(given) == 0
    assert main(["convert", str(place / "run"), str(place / "model")]) == 0
    return place


@pytest.fixture(scope="module")
def card(place: Path) -> ModelCard:
    return ModelCard.load(place / "model" / "README.md")


def read_evaluations(run: Path) -> dict[int, dict[str, float]]:
    """Return the rows of evaluation.csv by update."""
    with (run / "evaluation.csv").open(encoding="utf-8") as file:
        return {
            int(row["step"]): {name: float(text) for name, text in row.items() if text}
            for row in csv.DictReader(file)
        }


def test_the_library_parses_the_heading(card: ModelCard) -> None:
    assert isinstance(card.data, ModelCardData)
    assert card.data.library_name == "transformers"
    assert card.data.pipeline_tag == "fill-mask"
    assert card.data.model_name == "model"
    assert card.data.license is None


def test_the_metrics_are_those_of_the_last_evaluation(place: Path, card: ModelCard) -> None:
    expected = read_evaluations(place / "run")[4]
    found = {result.metric_type: result.metric_value for result in card.data.eval_results}
    assert found["masked_lm_loss"] == expected["masked_lm_loss"]
    assert found == {name: expected[name] for name in found}
    assert expected.keys() - found.keys() <= {"step", "trained", "examples"}


def test_the_body_names_data_settings_and_the_command(place: Path, card: ModelCard, training_set) -> None:
    assert "bertdata rebuild MODEL --from SOURCES --output rebuilt" in card.text
    manifest = Path(training_set) / "manifest.json"
    assert hashlib.md5(manifest.read_bytes()).hexdigest() in card.text
    for source in json.loads(manifest.read_text())["inputs"]:
        assert f"| {source['name']} | {source['bytes']:,} | {source['md5']} |" in card.text
    assert "| steps | 4 |" in card.text
    assert "| hidden_size | 32 |" in card.text
    assert str(place) not in card.text  # paths of the machine are left out


def test_an_earlier_checkpoint_has_its_own_evaluation(place: Path, trainer, tmp_path: Path) -> None:
    source = place / "run" / "checkpoints" / "step-00000002"
    assert trainer("convert", source, tmp_path / "earlier").status == 0
    card = ModelCard.load(tmp_path / "earlier" / "README.md")
    expected = read_evaluations(place / "run")[2]
    found = {result.metric_type: result.metric_value for result in card.data.eval_results}
    assert found["masked_lm_loss"] == expected["masked_lm_loss"]


def test_a_run_without_evaluations_says_so(training_set, trainer, tmp_path: Path) -> None:
    assert trainer(*words(training_set, tmp_path / "run", "--steps=1", "--warmup=0")).status == 0
    assert trainer("convert", tmp_path / "run", tmp_path / "model").status == 0
    card = ModelCard.load(tmp_path / "model" / "README.md")
    assert "The run made no evaluation." in card.text
    assert card.data.eval_results is None


def test_damaged_tables_of_evaluations_do_not_hinder_an_export(place: Path, trainer, tmp_path: Path) -> None:
    run = Path(shutil.copytree(place / "run", tmp_path / "run"))
    (run / "evaluation.csv").write_text("step,loss\nfour,much\n")
    assert trainer("convert", run, tmp_path / "model").status == 0
    assert "The evaluations of the run were not at hand" in (tmp_path / "model" / "README.md").read_text()


def test_the_library_refuses_a_manipulated_heading(place: Path) -> None:
    text = (place / "model" / "README.md").read_text()
    ModelCard(text)
    with pytest.raises(yaml.YAMLError):
        ModelCard(text.replace('"transformers"', '"transformers', 1))
    with pytest.raises(ValueError, match="heading|metadata|model-index|eval"):
        ModelCard(text.replace('"metrics"', '"measures"', 1), ignore_metadata_errors=False)


def test_an_existing_readme_is_kept(place: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n")
    write_model_card(str(tmp_path), str(tmp_path), open_checkpoint(str(place / "run")))
    assert (tmp_path / "README.md").read_text() == "mine\n"


def test_an_export_that_replaces_another_keeps_its_readme(place: Path, trainer, tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert trainer("convert", place / "run", model).status == 0
    (model / "README.md").write_text("mine\n")
    assert trainer("convert", place / "run", model, "--overwrite").status == 0
    assert (model / "README.md").read_text() == "mine\n"


def test_weights_of_another_program_have_a_card_too(place: Path, trainer, tmp_path: Path) -> None:
    theirs = Path(shutil.copytree(place / "model", tmp_path / "theirs"))
    for name in ("README.md", "lineage.json"):
        (theirs / name).unlink()
    assert trainer("convert", theirs, tmp_path / "again", "--to", "huggingface").status == 0
    card = ModelCard.load(tmp_path / "again" / "README.md")
    assert "How the weights began is not known." in card.text
    assert "The evaluations of the run were not at hand" in card.text
    weights = hashlib.md5((theirs / "model.safetensors").read_bytes()).hexdigest()
    assert f"| {weights} |" in card.text


def test_a_model_continued_from_the_hub_names_its_base(
    place: Path, training_set, trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = tmp_path / "models--google-bert--bert-tiny" / "snapshots"
    snapshots.mkdir(parents=True)
    (snapshots / "0").symlink_to(place / "model")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for start, base in (("bert-tiny", "google-bert/bert-tiny"), (place / "model", None)):
        run, model = tmp_path / "run" / str(base), tmp_path / "models" / str(base)
        assert (
            trainer(*words(training_set, run, f"--start-from-ckpt={start}", "--steps=1", "--warmup=0")).status
            == 0
        )
        assert trainer("convert", run, model).status == 0
        card = ModelCard.load(model / "README.md")
        assert card.data.base_model == base
        assert "started from weights of an earlier training" in card.text


def test_the_steps_of_a_model_are_statements_that_the_library_of_in_toto_validates(place: Path) -> None:
    statements = make_statements(read_lineage(str(place / "model")))
    for statement in statements:
        Statement.copy_from_pb(ParseDict(statement, StatementMessage())).validate()
    *_, trained, exported = statements
    types = [one["predicate"]["buildDefinition"]["buildType"] for one in (trained, exported)]
    assert types == ["urn:bertdata:step:pretrain", "urn:bertdata:step:export"]
    subjects = {one["name"]: one["digest"]["md5"] for one in exported["subject"]}
    files = {path.name for path in (place / "model").iterdir()} - {"README.md"}
    assert subjects == {
        name: hashlib.md5((place / "model" / name).read_bytes()).hexdigest() for name in files
    }
    weights = place / "run" / "checkpoints" / "step-00000004" / "model.safetensors"
    read = exported["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert hashlib.md5(weights.read_bytes()).hexdigest() in [one["digest"]["md5"] for one in read]


@pytest.mark.parametrize("name", ["run", "model"])
def test_a_signed_run_and_model_are_verified_and_a_changed_weight_is_named(
    place: Path, trainer, training_set, tmp_path: Path, name: str
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(private)
    (tmp_path / "key.pub").write_bytes(public)
    signed = Path(shutil.copytree(place / name, tmp_path / name))
    bertdata.sign(signed, tmp_path / "key.pem")
    assert bertdata.verify(signed, public_key=tmp_path / "key.pub").sound
    config = model_signing.verifying.Config().use_elliptic_key_verifier(public_key=tmp_path / "key.pub")
    config.verify(signed, signed / "model.sig")
    start = ("--steps=1", "--warmup=0", f"--start-from-ckpt={signed}")
    assert trainer(*words(training_set, tmp_path / "continued", *start)).status == 0  # read as before
    weights = max(signed.rglob("model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    [fault] = bertdata.verify(signed, public_key=tmp_path / "key.pub").faults
    assert (fault.file, fault.status) == (str(weights), "changed")
    with pytest.raises(ValueError, match="model.safetensors"):
        config.verify(signed, signed / "model.sig")


@pytest.mark.parametrize(
    ("head", "pipeline"), [("labels", "text-classification"), ("answers", "question-answering")]
)
def test_the_head_of_a_model_decides_what_the_hub_offers_it_for(
    tmp_path: Path, head: str, pipeline: str
) -> None:
    file = VocabularyFile(path=str(GOLDEN / "vocab.txt"), dialect="mlperf")
    exported = export(tmp_path, file, "bert", head)
    assert ModelCard.load(exported.directory / "README.md").data.pipeline_tag == pipeline
