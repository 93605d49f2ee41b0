"""Keys of bert_config.json and config.json that are not fields of ModelConfig, and what is done with them.

REFUSED lists keys with values that mean an unsupported model, which are an error. WARNED lists keys that give
a warning. LABEL_KEYS are about labels, and are read elsewhere. HARMLESS lists keys that are ignored. A key in
none of the lists in this module gives a warning too. The lists contain the keys that Google's, NVIDIA's and
Habana's programs write, keys of published models, and the attributes of all configurations in transformers,
from pytorch-transformers 1.0 to transformers 5.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertdata.config.value_check import suggest_known
from bertdata.errors import SettingsError

LABEL_KEYS = ("id2label", "label2id", "num_labels", "_num_labels", "problem_type")
"""Keys that describe the labels of a classifier."""

_READ_ELSEWHERE = """
    architectures bos_token_id eos_token_id cls_token_id sep_token_id mask_token_id unk_token_id
    tokenizer_class"""
"""Keys that other parts of this trainer use, when they read weights or tokenisers. For some keys in this
list, the value is taken from the tokeniser instead of the file.
"""

_RUNTIME_KEYS = """
    directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head
    pooler_type output_all_encoded_layers
    output_attentions output_hidden_states output_past output_scores return_dict return_dict_in_generate
    chunk_size_feed_forward gradient_checkpointing use_cache torchscript use_bfloat16 tf_legacy_loss
    torch_dtype dtype transformers_version _name_or_path name_or_path _commit_hash
    _attn_implementation _attn_implementation_internal _attn_implementation_autoset attn_implementation
    finetuning_task task_specific_params language sentence_transformers prefix"""
"""Keys about how a model is run and where it came from. They do not change the numbers that the model
computes.
"""

_GENERATION_KEYS = """
    bad_words_ids begin_suppress_tokens cross_attention_hidden_size decoder_start_token_id diversity_penalty
    do_sample early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty
    forced_bos_token_id forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size
    num_beam_groups num_beams num_return_sequences remove_invalid_values repetition_penalty suppress_tokens
    temperature top_k top_p typical_p"""
"""Keys about text generation, which transformers 4 writes into every config.json."""

HARMLESS = tuple(f"{_READ_ELSEWHERE} {_RUNTIME_KEYS} {_GENERATION_KEYS}".split())
"""Keys that have no effect on the models of this trainer, so that they are ignored without a warning."""


class SupportedValues(NamedTuple):
    """The supported values of a key, and a text for the error about any other value: what kind of model it
    means.
    """

    expected: tuple[Any, ...]
    meaning: str


REFUSED = {
    "position_embedding_type": SupportedValues(
        ("absolute", None), "its attention adds relative positions, which are not computed here"
    ),
    "is_decoder": SupportedValues((False, None), "it is a decoder, whose tokens see only those before them"),
    "is_encoder_decoder": SupportedValues((False, None), "it is an encoder with a decoder"),
    "add_cross_attention": SupportedValues((False, None), "its layers attend to another model's output"),
    "tie_encoder_decoder": SupportedValues((False, None), "it is an encoder with a decoder"),
    "pruned_heads": SupportedValues(
        ({}, [], None), "heads of its attention were taken out, so its layers have several sizes"
    ),
    "quantization_config": SupportedValues(
        (None,), "its weights are quantised, and are read as numbers here"
    ),
    "rope_scaling": SupportedValues((None,), "its rotary positions are scaled, which is not computed here"),
}
"""Keys with values that may mean a model that this trainer cannot compute."""

WARNED = {
    "auto_map": "a program in the directory itself, which no file may choose to run",
    "adapters": "adapters, which are not read",
}
"""Keys that change a model only in the program that wrote it, each with text about what the key means in that
program.
"""

FOREIGN: Mapping[str, Any] = {
    **dict.fromkeys((*HARMLESS, *LABEL_KEYS, *WARNED), True),
    **dict.fromkeys(REFUSED, True),
    "position_embedding_type": {"enum": ["absolute", None]},
    "is_decoder": {"const": False},
    "is_encoder_decoder": {"const": False},
}
"""JSON Schema of each key that only other programs use, but that this trainer knows."""


def check_foreign_keys(values: Mapping[str, Any]) -> None:
    """Raise SettingsError, with the reason, for a key whose value means an unsupported model."""
    for name, refused in REFUSED.items():
        if name in values and values[name] not in refused.expected:
            expected = " or ".join(map(repr, refused.expected[:1]))
            raise SettingsError(f"{name} is {values[name]!r:.80}, expected {expected}: {refused.meaning}")


def warn_of_label_keys(values: Mapping[str, Any]) -> list[str]:
    """Return a warning for each key about labels that contradicts ``id2label``, which takes precedence."""
    table = values.get("id2label")
    if not isinstance(table, Mapping) or not table:
        return []
    found = list[str]()
    count = values.get("num_labels", values.get("_num_labels"))
    if count not in (None, len(table)):
        found.append(f"num_labels is {count!r:.80}, but id2label names {len(table)}: the names are taken")
    back = values.get("label2id")
    if isinstance(back, Mapping) and any(
        str(back.get(name, number)) != str(number) for number, name in table.items()
    ):
        found.append("label2id has other numbers than id2label: those of id2label are taken")
    return found


def warn_of_foreign_keys(values: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Return a warning for each key that is ignored although it may change what the model computes.

    values: the keys of the model file.
    known: keys that are read, and keys that are known to be harmless.
    """
    found = [f"{name} names {what}" for name, what in WARNED.items() if values.get(name)]
    for name in values:
        if name not in known:
            found.append(f"{name} is not a known key and is not read{suggest_known(name, sorted(known))}")
    return found
