"""The model settings of a checkpoint, with those of the command line or configuration file taking
precedence.
"""

from collections.abc import Mapping
from typing import Any

from trainer.config.sections.model import apply_gelu_form
from trainer.config.settings import Config

_TRAINING_ONLY = ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range")
"""Settings that affect only training. A model that is only evaluated gives the same results with other
values.
"""


def override_stored_settings(config: Config, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model settings stored in the checkpoint, overridden by the configured ones.

    One setting of a model file does not override the stored one: hidden_act, because ``gelu`` in a
    bert_config.json means another formula than in a config.json.
    """
    given = config.model_settings
    if config.model.values()["hidden_act"] is None and "hidden_act" in stored:
        given.pop("hidden_act", None)
    laid = {**stored, **given}
    if "hidden_act" in laid:
        laid["hidden_act"] = apply_gelu_form(laid["hidden_act"], config.model.gelu)
    return laid


def describe_differences(stored: Mapping[str, Any], laid: Mapping[str, Any]) -> list[str]:
    """Return a line for each setting that makes the model compute something else than the checkpoint's model.

    stored: settings of the checkpoint.
    laid: settings after ``override_stored_settings``.
    """
    return [
        f"{name} is {laid[name]}, the checkpoint's {stored[name]}; its weights know the latter"
        for name in stored
        if laid[name] != stored[name] and name not in _TRAINING_ONLY
    ]
