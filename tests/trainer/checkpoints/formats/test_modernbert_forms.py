"""ModernBertForMaskedLM in transformers' form and in the original program's, both ways."""

import json
from dataclasses import replace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.support.kit_models import flat
from tests.support.made_checkpoints import checkpoint_of
from tests.support.training_runs import refuse, words
from tests.trainer.checkpoints.formats.test_original_encoders import filled
from trainer.checkpoints.formats.huggingface import write_huggingface
from trainer.config.modernbert import ModernBertConfig
from trainer.model.headed import BertForMaskedLM

SHAPE = ModernBertConfig(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=48,
    local_attention=6,
    max_position_embeddings=64,
)
SMALL = ("--model-type=modernbert", "--hidden-size=32", "--num-hidden-layers=4", "--local-attention=8")
IDS = torch.randint(5, 99, (1, 40), generator=torch.Generator().manual_seed(1))


def logits(model: BertForMaskedLM) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(flat(IDS[0], torch.tensor([0, 40]), IDS[0])).masked_lm[:, :99]


def transformers_logits(place) -> torch.Tensor:
    theirs, report = transformers.AutoModelForMaskedLM.from_pretrained(place, output_loading_info=True)
    assert type(theirs) is transformers.ModernBertForMaskedLM
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    with torch.no_grad():
        return theirs.eval()(input_ids=IDS).logits[0]


@pytest.mark.parametrize("every", [1, 3, 9])
def test_transformers_loads_what_is_written_and_it_comes_back_bit_for_bit(tmp_path, every):
    shape = replace(
        SHAPE, global_attn_every_n_layers=every, global_rope_theta=500.0, use_prediction_bias=True
    )
    ours = BertForMaskedLM(shape)
    write_huggingface(checkpoint_of(ours), str(tmp_path))
    assert torch.allclose(logits(ours), transformers_logits(tmp_path), atol=1e-5)
    again = filled(tmp_path)
    assert again.config == replace(shape, global_attn_every_n_layers=min(every, 4))
    for name, value in ours.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


OLD = {
    **{"global_attn_every_n_layers": 2, "global_rope_theta": 700.0, "local_rope_theta": 70.0},
    **{"reference_compile": None, "repad_logits_with_grad": False, "position_embedding_type": "absolute"},
}
"""Keys of config.json as transformers 4 writes them."""


@pytest.mark.parametrize("form", ["4", "5"])
def test_a_config_of_either_form_of_transformers_is_read(tmp_path, form):
    made = transformers.ModernBertConfig(**SHAPE.for_transformers() | {"layer_types": None, **OLD})
    theirs = transformers.ModernBertForMaskedLM(made)
    theirs.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    values = json.loads(file.read_text())
    if form == "4":
        values = {**values, **OLD}
        del values["layer_types"], values["rope_parameters"]
    else:
        values = {name: value for name, value in values.items() if name not in OLD}
    file.write_text(json.dumps(values))
    ours = filled(tmp_path)
    shape = ours.config
    assert isinstance(shape, ModernBertConfig)
    assert [shape.is_global(layer) for layer in range(4)] == [True, False, True, False]
    assert torch.allclose(logits(ours), transformers_logits(tmp_path), atol=1e-5)


def test_the_original_programs_names_are_read(tmp_path):
    ours = BertForMaskedLM(SHAPE)
    write_huggingface(checkpoint_of(ours), str(tmp_path))
    file = tmp_path / "model.safetensors"
    tensors = {
        f"bert.{name.removeprefix('model.')}" if name.startswith("model.") else name: tensor
        for name, tensor in load_file(file).items()
    }
    save_file({**tensors, "decoder.weight": tensors["bert.embeddings.tok_embeddings.weight"].clone()}, file)
    assert torch.equal(logits(filled(tmp_path)), logits(ours))


def test_weights_of_an_encoder_alone_are_read(tmp_path):
    write_huggingface(checkpoint_of(BertForMaskedLM(SHAPE)), str(tmp_path))
    transformers.ModernBertModel.from_pretrained(tmp_path).save_pretrained(tmp_path / "encoder")
    encoder = {name for name in filled_names(tmp_path / "encoder") if name.startswith("bert.")}
    assert encoder == {name for name, _ in BertForMaskedLM(SHAPE).bert.named_parameters(prefix="bert")}


def filled_names(place) -> list[str]:
    from trainer.checkpoints.formats.huggingface import read_huggingface

    return list(read_huggingface(str(place)).weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"layer_types": ["sliding_attention"] * 4},
            "config.json: layer_types: expected full_attention in every n-th layer",
        ),
        ({"rope_parameters": [1]}, "config.json: rope_parameters is [1], expected an object"),
        (
            {"rope_parameters": {"full_attention": 1}},
            "rope_parameters.full_attention is 1, expected an object",
        ),
        ({"layer_types": {"a": 1}}, "config.json: layer_types is {'a': 1}, expected a list"),
        ({"max_position_embeddings": {}}, "config.json: max_position_embeddings is {}, expected an integer"),
        ({"norm_bias": True}, "config.json: norm_bias is True, expected False"),
        ({"classifier_activation": "silu"}, "classifier_activation is 'silu', expected that of hidden_act"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 1.0}}},
            "rope_parameters: full_attention has the rope_type 'yarn', expected 'default'",
        ),
    ],
)
def test_a_config_that_no_published_model_has_is_refused_in_one_line(trainer, tmp_path, changes, message):
    write_huggingface(checkpoint_of(BertForMaskedLM(SHAPE)), str(tmp_path / "form"))
    file = tmp_path / "form" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    refuse(trainer("convert", tmp_path / "form", tmp_path / "ours"), 2, message)


def test_a_run_becomes_a_modernbert_that_transformers_fills_masks_with(trainer, block_set, tmp_path):
    run = words(block_set, tmp_path / "run", "--steps=2", "--warmup=0", "--no-logs", *SMALL)
    assert trainer(*run).status == 0
    assert trainer("convert", tmp_path / "run", tmp_path / "form").status == 0
    fill = transformers.pipeline("fill-mask", str(tmp_path / "form"), top_k=5)
    theirs = [answer["token_str"] for answer in fill("a [MASK] of stone")]
    (ours,) = json.loads(trainer("predict", tmp_path / "run", "a [MASK] of stone", "--json").out)
    assert [word.removeprefix("##") for word, _ in ours] == [word.removeprefix("##") for word in theirs]
    outcome = trainer("convert", tmp_path / "form", tmp_path / "back")
    assert outcome.status == 0
    assert "random" not in outcome.out


def test_a_model_without_segments_is_refused_for_pairs(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path / "run", "--steps=1", "--warmup=0", *SMALL)
    refuse(trainer(*run, "--no-logs"), 2, "type_vocab_size is 1, but the examples of")
