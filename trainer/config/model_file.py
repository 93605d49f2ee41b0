"""A model's file: Google's bert_config.json or transformers' config.json."""

from collections.abc import Mapping
from typing import Any

from bertdata.config.value_check import check_values, read_object
from bertdata.errors import SettingsError
from trainer.config.model import kind_of

TRAINED_ACT = "trained_hidden_act"
"""Key of our own in a bert_config.json: the activation, where Google's programs know it by no name."""

_UNREAD = """_name_or_path add_cross_attention architectures bos_token_id classifier_dropout
    chunk_size_feed_forward output_attentions output_hidden_states problem_type return_dict directionality
    dtype eos_token_id gradient_checkpointing id2label label2id output_all_encoded_layers pooler_fc_size
    pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type tie_word_embeddings
    torch_dtype transformers_version use_cache"""
"""Keys that other programs write and that change nothing here."""

FOREIGN = {
    "position_embedding_type": {"const": "absolute"},
    "is_decoder": {"const": False},
    "is_encoder_decoder": {"const": False},
    **dict.fromkeys(_UNREAD.split(), True),
}
"""The schema of each key of other programs alone."""


def read_model_file(path: str) -> dict[str, Any]:
    """The keys of the file with the meaning of ModelConfig's kinds."""
    return of_file(read_object(path), path)


def of_file(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The keys of a bert_config.json or config.json with the meaning of ModelConfig's kinds.

    SettingsError begins with the file.
    """
    found = dict(values)
    if (trained := found.pop(TRAINED_ACT, None)) is not None:
        found["hidden_act"] = trained
    try:
        kind = kind_of(found)
        known = kind.file_keys()
        found = kind.of_file(found)
        check_values({name: value for name, value in found.items() if name in known}, known)
        return found
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None
