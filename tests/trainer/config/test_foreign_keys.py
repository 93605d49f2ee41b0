"""Keys of config.json beside a model's shape: used, refused with a reason, warned of by name, or harmless."""

from typing import Any

import pytest
import transformers

from bertdata.errors import SettingsError
from trainer.config.model_file import parse_model_file
from trainer.config.model_kinds import read_model_config

CLASSES = ("BertConfig", "RobertaConfig", "ModernBertConfig", "CamembertConfig", "XLMRobertaConfig")

OF_TRANSFORMERS_4 = """
    _attn_implementation_autoset _name_or_path add_cross_attention architectures bad_words_ids
    begin_suppress_tokens bos_token_id chunk_size_feed_forward classifier_dropout cross_attention_hidden_size
    decoder_start_token_id diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size
    eos_token_id exponential_decay_length_penalty finetuning_task forced_bos_token_id forced_eos_token_id
    is_decoder is_encoder_decoder length_penalty max_length min_length no_repeat_ngram_size num_beam_groups
    num_beams num_return_sequences output_attentions output_hidden_states output_scores prefix problem_type
    pruned_heads remove_invalid_values repetition_penalty return_dict return_dict_in_generate sep_token_id
    suppress_tokens task_specific_params temperature tf_legacy_loss tie_encoder_decoder tie_word_embeddings
    tokenizer_class top_k top_p torch_dtype torchscript typical_p use_bfloat16 use_cache"""
"""Attributes of a BertConfig's to_dict in transformers 4.48.3 and 4.57.3 beside the shape."""

PUBLISHED: dict[str, dict[str, Any]] = {
    "bert-base-uncased": {
        "architectures": ["BertForMaskedLM"],
        "attention_probs_dropout_prob": 0.1,
        "gradient_checkpointing": False,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "model_type": "bert",
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
        "transformers_version": "4.6.0.dev0",
        "use_cache": True,
    },
    "bert-base-multilingual-cased": {
        "architectures": ["BertForMaskedLM"],
        "directionality": "bidi",
        "model_type": "bert",
        "pooler_fc_size": 768,
        "pooler_num_attention_heads": 12,
        "pooler_num_fc_layers": 3,
        "pooler_size_per_head": 128,
        "pooler_type": "first_token_transform",
        "vocab_size": 119547,
    },
    "of pytorch-transformers 1": {
        "attention_probs_dropout_prob": 0.1,
        "finetuning_task": "mnli",
        "hidden_act": "gelu",
        "num_labels": 3,
        "output_attentions": False,
        "output_hidden_states": False,
        "output_past": True,
        "pruned_heads": {},
        "torchscript": False,
        "use_bfloat16": False,
    },
    "of transformers 2": {
        "_num_labels": 2,
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
        "label2id": {"LABEL_0": 0, "LABEL_1": 1},
        "language": "german",
        "name": "Bert",
    },
    "of a cross-encoder": {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
        "sentence_transformers": {
            "activation_fn": "torch.nn.modules.linear.Identity",
            "version": "4.0.1",
        },
    },
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_attribute_of_transformers_configurations_is_decided(name):
    values = getattr(transformers, name)().to_dict()
    assert parse_model_file(values, "config.json").warnings == ()


def test_every_attribute_of_older_releases_is_decided():
    defaults = {"is_decoder": False, "is_encoder_decoder": False, "tie_word_embeddings": True}
    values = {**dict.fromkeys(OF_TRANSFORMERS_4.split()), **defaults}
    assert parse_model_file(values, "config.json").warnings == ()


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files_are_read(name):
    found = parse_model_file(PUBLISHED[name], "config.json")
    unknown = [key for key in PUBLISHED[name] if key == "name"]
    assert len(found.warnings) == len(unknown)
    read_model_config(found.keys)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"pruned_heads": {"0": [1]}}, "heads of its attention were taken out"),
        ({"position_embedding_type": "relative_key"}, "relative positions"),
        ({"is_decoder": True}, "it is a decoder"),
        ({"add_cross_attention": True}, "another model's output"),
        ({"quantization_config": {"load_in_8bit": True}}, "its weights are quantised"),
        (
            {"model_type": "deberta-v2"},
            "model_type is 'deberta-v2', expected one of bert, roberta, modernbert",
        ),
        ({"classifier_dropout": 1.5}, "classifier_dropout is 1.5, expected less than 1"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings is 1, expected true or false"),
    ],
)
def test_a_key_that_means_another_model_is_refused_with_its_reason(keys, said):
    with pytest.raises(SettingsError) as caught:
        parse_model_file(keys, "DIR/config.json")
    assert str(caught.value).startswith(f"DIR/config.json: {next(iter(keys))} is ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"hiden_size": 32},
            "hiden_size is not a known key and is not read; the nearest known is hidden_size",
        ),
        ({"rotary_scaling_factor": 2}, "rotary_scaling_factor is not a known key and is not read"),
        ({"auto_map": {"AutoModel": "modeling.Own"}}, "auto_map names a program in the directory itself"),
        ({"adapters": {"config_map": {}}}, "adapters names adapters, which are not read"),
        (
            {"id2label": {"0": "a", "1": "b"}, "num_labels": 3},
            "num_labels is 3, but id2label names 2: the names",
        ),
        (
            {"id2label": {"0": "a", "1": "b"}, "label2id": {"b": 0}},
            "label2id has other numbers than id2label",
        ),
    ],
)
def test_a_key_that_is_not_read_is_named(keys, said):
    [warning] = parse_model_file(keys, "DIR/config.json").warnings
    assert warning.startswith(f"DIR/config.json: {said}")


@pytest.mark.parametrize("kind", ["xlm-roberta", "camembert"])
def test_the_models_that_differ_in_their_tokeniser_alone_are_robertas(kind):
    keys = parse_model_file({"model_type": kind, "max_position_embeddings": 514}, "config.json").keys
    assert (keys["model_type"], keys["max_position_embeddings"]) == ("roberta", 512)


def test_a_file_without_a_kind_has_that_of_its_class():
    file = parse_model_file(
        {"architectures": ["RobertaForMaskedLM"], "max_position_embeddings": 514}, "config.json"
    )
    assert read_model_config(file.keys).max_position_embeddings == 512
