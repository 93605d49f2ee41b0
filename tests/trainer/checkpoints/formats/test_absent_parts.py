"""Models that lack biases or the layer before the word logits: their outputs, checkpoints and training."""

import json
from dataclasses import replace

import pytest
import torch
from transformers import BertForNextSentencePrediction, MegatronBertForPreTraining

from bertdata.errors import DataError, SettingsError
from tests.support.made_checkpoints import CONFIG, checkpoint_of, made
from tests.support.training_runs import tensors
from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.formats.kinds import WRITERS, read_checkpoint
from trainer.checkpoints.reading import read_state
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.data.row_batches import RowBatch
from trainer.model.headed import BertForPreTraining

KEYS = ("use_qkv_bias", "use_attention_projection_bias", "use_cls_layer", "use_prediction_bias")
BIASES = ("use_qkv_bias", "use_attention_projection_bias", "use_prediction_bias")
GRAPHCORES = dict.fromkeys(KEYS, False)
WITHOUT_BIASES = dict.fromkeys(BIASES, False)


def config(**changes: object) -> ModelConfig:
    return ModelConfig(vocab_size=101, **{**CONFIG, **changes})


def batch() -> RowBatch:
    draw = torch.Generator().manual_seed(5)
    ids = torch.randint(1, 101, (3, 12), generator=draw, dtype=torch.int32)
    return RowBatch(
        input_ids=ids,
        token_type_ids=(ids % 2).int(),
        attention_mask=torch.ones_like(ids),
        masked_lm_positions=torch.tensor([[1, 3], [2, 5], [4, 7]]),
        masked_lm_ids=torch.ones(3, 2, dtype=torch.int64),
        masked_lm_weights=torch.ones(3, 2),
        next_sentence_labels=torch.zeros(3, dtype=torch.int32),
    )


def outputs(model: BertForPreTraining) -> tuple[torch.Tensor, torch.Tensor]:
    model.eval()
    with torch.no_grad():
        logits = model(batch())
    return logits.masked_lm, logits.next_sentence


@pytest.mark.parametrize("joins", [True, False])
def test_a_model_without_biases_computes_what_one_with_zeros_there_computes(joins):
    whole = BertForPreTraining(config())  # its biases are zeros at first
    lacking = BertForPreTraining(config(**WITHOUT_BIASES))
    missing = lacking.load_state_dict(whole.state_dict(), strict=False)
    assert not missing.missing_keys
    assert len(missing.unexpected_keys) == 4 * CONFIG["num_hidden_layers"] + 1
    for model in (whole, lacking):
        for layer in model.bert.encoder.layer:
            layer.attention.self.joins = joins
    for found, wanted in zip(outputs(lacking), outputs(whole), strict=True):
        assert torch.equal(found, wanted)


def test_a_model_without_the_layer_before_the_word_logits_compares_words_with_the_tokens_themselves():
    model = BertForPreTraining(config(**GRAPHCORES))
    model.eval()
    with torch.no_grad():
        rows, _ = model.bert(batch())
        words = model.bert.embeddings.word_embeddings.weight[:101]
        wanted = rows.view(3, 12, -1)[torch.arange(3)[:, None], batch().masked_lm_positions] @ words.t()
        found = model(batch()).masked_lm
    torch.testing.assert_close(found[:, :101], wanted.flatten(0, 1))
    assert (found[:, 101:] == -torch.inf).all()


def held(**changes: bool) -> Checkpoint:
    """A checkpoint with weights and moments of a model with these parts left out."""
    whole = made()
    shape = replace(whole.expect_config(), **changes)
    names = BertForPreTraining(shape).state_dict()
    return replace(
        whole,
        config=shape,
        weights={name: value for name, value in whole.weights.items() if name in names},
        moments={key: value for key, value in whole.moments.items() if key.partition("/")[2] in names},
    )


@pytest.mark.parametrize("kind", list(WRITERS))
def test_other_programs_get_zeros_for_missing_biases(tmp_path, kind):
    before = held(**WITHOUT_BIASES)
    read = read_checkpoint(WRITERS[kind](before, str(tmp_path / "there")))
    assert read.config == replace(before.expect_config(), **dict.fromkeys(BIASES, True))
    added = read.weights.keys() - before.weights.keys()
    assert len(added) == 4 * CONFIG["num_hidden_layers"] + 1
    assert not any(read.weights[name].read().any() for name in added)
    model = BertForPreTraining(before.expect_config())
    assert fill_model(model, read) == []  # zeros are left out again
    for name, value in model.state_dict().items():
        rows = slice(101 if name.endswith("word_embeddings.weight") else None)
        assert torch.equal(value[rows], before.weights[name].read()[rows]), name


@pytest.mark.parametrize("kind", ["tf2", "nvidia"])
def test_a_head_without_the_layer_is_refused_where_the_form_has_none(tmp_path, kind):
    with pytest.raises(
        SettingsError, match="use_cls_layer is false: .* has no model without the layer before"
    ):
        WRITERS[kind](held(use_cls_layer=False), str(tmp_path / "there"))


def test_transformers_gets_encoder_and_pairs_of_a_head_without_the_layer(tmp_path):
    before = held(use_cls_layer=False, **WITHOUT_BIASES)
    place = WRITERS["huggingface"](before, str(tmp_path / "there"))
    values = json.loads((tmp_path / "there" / "config.json").read_text(encoding="utf-8"))
    assert values["architectures"] == ["BertForNextSentencePrediction"]
    theirs, loading = BertForNextSentencePrediction.from_pretrained(place, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    model = BertForPreTraining(before.expect_config())
    fill_model(model, before)
    given = batch()
    with torch.no_grad():
        found = theirs(
            given.input_ids.long(), given.attention_mask.long(), given.token_type_ids.long()
        ).logits
    torch.testing.assert_close(found, outputs(model)[1], rtol=1e-5, atol=1e-5)


def with_norms_first(**changes: bool) -> Checkpoint:
    whole = made()
    shape = replace(whole.expect_config(), megatron_residual_connection=True, **changes)
    return replace(whole, config=shape, optimiser="lamb-mlperf")


def test_transformers_gets_a_megatron_bert_where_norms_come_first(tmp_path):
    before = with_norms_first(scale_query_key=True)
    place = WRITERS["huggingface"](before, str(tmp_path / "there"))
    theirs, loading = MegatronBertForPreTraining.from_pretrained(place, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    model = BertForPreTraining(before.expect_config())
    fill_model(model, before)
    given = batch()
    with torch.no_grad():
        found = theirs(given.input_ids.long(), given.attention_mask.long(), given.token_type_ids.long())
    words, pairs = outputs(model)
    places = found.prediction_logits[torch.arange(3)[:, None], given.masked_lm_positions].flatten(0, 1)
    torch.testing.assert_close(places, words[:, :101], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.seq_relationship_logits, pairs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "before"),
    [
        ("huggingface", with_norms_first()),
        ("tf1", with_norms_first()),
        ("tf1", held(use_cls_layer=False)),
    ],
    ids=["norms in transformers", "norms in TensorFlow", "no layer in TensorFlow"],
)
def test_such_a_model_comes_back_from_a_form_that_has_it(tmp_path, kind, before):
    read = read_checkpoint(WRITERS[kind](before, str(tmp_path / "there")))
    assert read.config == before.config
    model, other = (BertForPreTraining(before.expect_config()) for _ in range(2))
    fill_model(model, before)
    assert fill_model(other, read) == []
    for found, wanted in zip(outputs(other), outputs(model), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_an_encoder_alone_needs_no_layer_of_a_head(tmp_path):
    whole = held(**GRAPHCORES)
    weights = {name: value for name, value in whole.weights.items() if name.startswith("bert.")}
    read = read_checkpoint(WRITERS["huggingface"](replace(whole, weights=weights), str(tmp_path / "there")))
    assert weights.keys() < read.weights.keys()


@pytest.mark.parametrize(
    ("key", "tensor"),
    [
        ("use_qkv_bias", "bert.encoder.layer.0.attention.self.query.bias"),
        ("use_attention_projection_bias", "bert.encoder.layer.0.attention.output.dense.bias"),
        ("use_prediction_bias", "cls.predictions.bias"),
    ],
)
def test_a_bias_that_counts_is_not_dropped(key, tensor):
    with pytest.raises(DataError, match=f"{tensor} is not zero, .* give {key} true"):
        fill_model(BertForPreTraining(config(**{key: False})), made())


def test_a_layer_that_the_model_lacks_is_not_dropped():
    with pytest.raises(DataError, match=r"\(cls.predictions.transform\), .* give use_cls_layer true"):
        fill_model(BertForPreTraining(config(use_cls_layer=False)), made())


@pytest.mark.parametrize("key", ["use_qkv_bias", "use_attention_projection_bias"])
def test_a_model_with_biases_names_the_key_for_a_checkpoint_without(key):
    checkpoint = replace(checkpoint_of(BertForPreTraining(config(**{key: False}))), path="there")
    with pytest.raises(DataError, match=f"there: lacks bert.encoder.layer.0.attention.* give {key} false"):
        fill_model(BertForPreTraining(config()), checkpoint)


def test_such_a_model_trains_is_saved_and_goes_on(trainer, tmp_path, training_set):
    flags = [f"--{key.replace('_', '-')}=false" for key in KEYS]
    model = ("--num-hidden-layers=1", "--hidden-size=32", "--num-attention-heads=2")
    run = ("--batch-size=2", "--steps=2", "--no-progress-bar", f"--train-data={training_set}")
    place = tmp_path / "run"
    outcome = trainer("pretrain", *model, *run, *flags, f"--output-dir={place}", "--optimiser=lamb-graphcore")
    assert outcome.status == 0, outcome.err
    found = read_state(place / "checkpoints" / "step-00000002").model
    assert {key: found[key] for key in KEYS} == GRAPHCORES
    assert b"query.bias" not in tensors(place, 2)["model.safetensors"]
    done = trainer("convert", place, tmp_path / "there")
    assert done.status == 0, done.err
    assert "without the head of masked words" in done.out
    done = trainer("convert", place, tmp_path / "tf1", "--to=tf1")
    assert "bert_config.json says use_cls_layer false, which Google's program does not know" in done.out
    copied = tmp_path / "copy"
    assert trainer("convert", place, copied, "--to", "bertdata").status == 0
    more = trainer(
        "pretrain", *model, *run, *flags, f"--output-dir={tmp_path / 'on'}", f"--start-from-ckpt={copied}"
    )
    assert more.status == 0, more.err


def test_a_conversion_says_that_it_writes_zeros(trainer, tmp_path, training_set):
    model = ("--num-hidden-layers=1", "--hidden-size=32", "--num-attention-heads=2")
    run = (
        "--batch-size=2",
        "--steps=1",
        "--no-progress-bar",
        f"--train-data={training_set}",
        "--use-qkv-bias=false",
    )
    assert trainer("pretrain", *model, *run, f"--output-dir={tmp_path / 'run'}").status == 0
    outcome = trainer("convert", tmp_path / "run", tmp_path / "there")
    assert outcome.status == 0, outcome.err
    assert "zeros for its missing biases (false: use_qkv_bias)" in outcome.out


@pytest.mark.parametrize("kind", ["tf1", "tf2", "nvidia"])
def test_a_modernbert_is_refused_by_the_forms_of_bert(tmp_path, kind):
    shape = ModernBertConfig(vocab_size=101, **CONFIG)
    whole = replace(made(), config=shape)
    with pytest.raises(SettingsError):
        WRITERS[kind](whole, str(tmp_path / "there"))
