"""Heads of RoBERTa and ModernBERT are those of transformers, and go out and come in tensor for tensor."""

import json
from dataclasses import replace

import pytest
import torch
import transformers

from tests.support.fine_tuning import finetune_words, squad_file, table
from tests.support.kit_models import flat
from tests.support.made_checkpoints import checkpoint_of
from tests.support.training_runs import words
from trainer.__main__ import main
from trainer.checkpoints.any_checkpoint import StoredTensor, unpad_vocabulary
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.formats.huggingface import read_huggingface, write_huggingface
from trainer.checkpoints.formats.modernbert import to_modernbert
from trainer.checkpoints.formats.roberta import to_roberta
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.data.batches import Batch
from trainer.data.row_batches import RowBatch
from trainer.model.headed import BertForMaskedLM, HeadedBert
from trainer.tasks.heads import make_answerer, make_classifier, split_into_sequences

LENGTHS = (9, 16, 3)
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 48}
KINDS = {
    "roberta": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    "modernbert": {"hidden_dropout_prob": 0.0, "local_attention": 6},
    "mean": {"model_type": "modernbert", "hidden_dropout_prob": 0.0, "classifier_pooling": "mean"},
}
HEADS = {
    "SequenceClassification": lambda shape: make_classifier(shape, 3),
    "QuestionAnswering": make_answerer,
}


def shape_of(kind: str) -> ModelConfig:
    own = {"model_type": kind, **KINDS[kind], **SIZES, "vocab_size": 64, "max_position_embeddings": 20}
    return read_model_config({"classifier_pooling": "cls", **own} if kind == "modernbert" else own)


def batches(padding: int) -> dict[str, Batch]:
    """The same sequences flat and as rows."""
    draw = torch.Generator().manual_seed(5)
    ids = torch.randint(5, 64, (sum(LENGTHS),), generator=draw)
    ends = torch.tensor([0, *LENGTHS]).cumsum(0)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    rows = torch.full(mask.shape, padding)
    rows[mask] = ids
    slots = torch.zeros(len(LENGTHS), 1).int()
    made = RowBatch(
        input_ids=rows.int(),
        token_type_ids=torch.zeros_like(rows).int(),
        attention_mask=mask.int(),
        masked_lm_positions=slots,
        masked_lm_ids=slots,
        masked_lm_weights=slots.float(),
        next_sentence_labels=torch.zeros(len(LENGTHS)).int(),
    )
    return {"flat": flat(ids, ends, ids), "rows": made}


def logits_of(model: HeadedBert, batch: Batch, name: str) -> torch.Tensor:
    """Of each sequence, or of each real token in order."""
    logits = model(batch)
    if name == "SequenceClassification":
        return logits
    used, found = split_into_sequences(logits, batch)
    return found[used]


@pytest.mark.parametrize("form", ["flat", "rows"])
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("kind", KINDS)
def test_logits_and_gradients_are_those_of_transformers(tmp_path, kind, name, form):
    torch.manual_seed(2)
    ours = HEADS[name](shape_of(kind))
    write_huggingface(checkpoint_of(ours), str(tmp_path))
    auto = getattr(transformers, f"AutoModelFor{name}")
    theirs, report = auto.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs).__name__ == f"{'Roberta' if kind == 'roberta' else 'ModernBert'}For{name}"
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    made = batches(ours.config.pad_token_id)
    found = logits_of(ours.train(), made[form], name)
    rows = made["rows"]
    result = theirs.train()(input_ids=rows.input_ids.long(), attention_mask=rows.attention_mask)
    if name == "SequenceClassification":
        expected = result.logits
    else:
        both = torch.stack((result.start_logits, result.end_logits), -1)
        expected = both[rows.attention_mask.bool()]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    (found * direction).sum().backward()
    (expected * direction).sum().backward()
    gradients = {
        name: StoredTensor.of(torch.zeros_like(weight) if weight.grad is None else weight.grad)
        for name, weight in ours.named_parameters()
    }
    to_theirs = to_roberta if kind == "roberta" else to_modernbert
    own = to_theirs(unpad_vocabulary(gradients, ours.config), ours.config)
    for weight, parameter in theirs.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(own[weight].read(), parameter.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("kind", ["roberta", "modernbert"])
def test_what_is_written_comes_back_bit_for_bit(tmp_path, kind, name):
    ours = HEADS[name](shape_of(kind))
    write_huggingface(checkpoint_of(ours), str(tmp_path))
    again = HEADS[name](read_huggingface(str(tmp_path)).expect_config())
    missing = fill_model(again, read_huggingface(str(tmp_path)))
    assert all(name.startswith("bert.pooler.") for name in missing)  # no part of a head that finds answers
    for weight, value in ours.state_dict().items():
        if weight not in missing:
            assert torch.equal(value, again.state_dict()[weight]), weight


def test_a_modernberts_classifier_begins_with_the_head_of_its_masked_words():
    pretrained, labels = BertForMaskedLM(shape_of("modernbert")), make_classifier(shape_of("modernbert"), 2)
    assert fill_model(labels, checkpoint_of(pretrained)) == ["classifier.weight", "classifier.bias"]
    name = "cls.predictions.transform.dense.weight"
    assert torch.equal(labels.state_dict()[name], pretrained.state_dict()[name])


def test_a_missing_sequence_has_finite_logits():
    model, whole = make_classifier(shape_of("mean"), 2).eval(), batches(0)["flat"]
    some = replace(
        whole,
        first_rows=torch.cat((whole.first_rows, torch.zeros(1).int())),
        ends=torch.cat((whole.ends, whole.ends[-1:])),
        next_sentence_labels=torch.cat((whole.next_sentence_labels, torch.tensor([-1]).int())),
    )
    logits = model(some)
    assert torch.isfinite(logits).all()
    torch.testing.assert_close(logits[:3], model(whole))


@pytest.fixture(scope="module")
def encoders(block_set, tmp_path_factory):
    """A directory of transformers' form for each kind, after two updates on masked words."""
    place = tmp_path_factory.mktemp("encoders")
    for kind in ("roberta", "modernbert"):
        run = words(block_set, place / f"{kind}-run", "--steps=2", "--warmup=0", "--no-logs")
        assert main([*map(str, run), f"--model-type={kind}"]) == 0
        assert main(["convert", str(place / f"{kind}-run"), str(place / kind)]) == 0
    return place


@pytest.mark.parametrize("kind", ["roberta", "modernbert"])
def test_a_table_is_learned_and_transformers_gives_the_same_labels(trainer, encoders, tmp_path, kind):
    data = table(tmp_path / "train.tsv", 12)
    given = ("--train-file", data, "--eval-file", data, "--steps=2", "--eval-every=0")
    assert trainer(*finetune_words("classification", encoders / kind, tmp_path / "run", *given)).status == 0
    assert trainer("convert", tmp_path / "run", tmp_path / "form").status == 0
    theirs = transformers.pipeline("text-classification", str(tmp_path / "form"), top_k=None)
    text = data.read_text(encoding="utf-8").splitlines()[1].split("\t")[0]
    told = json.loads(trainer("predict", tmp_path / "run", text, "--json").out)
    expected = {one["label"]: one["score"] for one in theirs(text)[0]}
    assert set(expected) == {"bad", "good"}
    assert told["probabilities"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", ["roberta", "modernbert"])
def test_answers_are_learned_and_written_for_transformers(trainer, encoders, tmp_path, kind):
    data = squad_file(tmp_path / "train.json", 8)
    given = ("--train-file", data, "--eval-file", data, "--steps=2", "--eval-every=0")
    outcome = trainer(*finetune_words("squad", encoders / kind, tmp_path / "run", *given))
    assert outcome.status == 0, outcome.err
    assert trainer("convert", tmp_path / "run", tmp_path / "form").status == 0
    _, report = transformers.AutoModelForQuestionAnswering.from_pretrained(
        tmp_path / "form", output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert trainer("convert", tmp_path / "form", tmp_path / "back").status == 0
