"""The shape of a RoBERTa (Liu et al. 2019), which is a BERT without segments.

transformers counts the positions of a RoBERTa differently from this trainer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import repeat_setting
from trainer.config.model import ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class RobertaConfig(ModelConfig):
    """The shape of a RoBERTa, by default of roberta-base.

    In transformers, the position embedding starts with ``pad_token_id + 1`` rows that are never read. This
    trainer leaves them out, and max_position_embeddings counts the rest.
    """

    vocab_size: int = repeat_setting(ModelConfig, "vocab_size", default=50265)
    type_vocab_size: int = repeat_setting(ModelConfig, "type_vocab_size", default=1)
    layer_norm_eps: float = repeat_setting(ModelConfig, "layer_norm_eps", default=1e-5)
    model_type: str = repeat_setting(ModelConfig, "model_type", default="roberta")
    pad_token_id: int = repeat_setting(ModelConfig, "pad_token_id", default=1)

    @classmethod
    def of_file(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Translate the keys of transformers' config.json to this class's fields."""
        found = ModelConfig.of_file(values)
        padding = found.setdefault("pad_token_id", cls().pad_token_id)
        rows = found.get("max_position_embeddings")
        if isinstance(rows, int) and isinstance(padding, int):
            found["max_position_embeddings"] = rows - padding - 1
        return found

    def for_transformers(self) -> dict[str, Any]:
        """Return the keys for transformers' config.json."""
        rows = self.max_position_embeddings + self.unread_positions
        return self.as_json() | {"max_position_embeddings": rows}

    @property
    def unread_positions(self) -> int:
        """Number of rows in transformers' position embedding before the first row that is read."""
        return self.pad_token_id + 1
