"""The shape of a checkpoint's model under the keys that the command line or a configuration gives."""

from collections.abc import Mapping
from typing import Any

from trainer.config.sections.model import with_form
from trainer.config.settings import Config

_OF_TRAINING = ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range")
"""Keys that change nothing in a model that only computes."""


def lay_over(config: Config, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's keys: the stored ones, overridden by those that are given.

    Of a model file's hidden_act the stored form is taken, because ``gelu`` in a bert_config.json is another
    than in a config.json.
    """
    given = config.model_settings
    if config.model.values()["hidden_act"] is None and "hidden_act" in stored:
        given.pop("hidden_act", None)
    laid = {**stored, **given}
    if "hidden_act" in laid:
        laid["hidden_act"] = with_form(laid["hidden_act"], config.model.gelu)
    return laid


def differences(stored: Mapping[str, Any], laid: Mapping[str, Any]) -> list[str]:
    """Return a line for each key by which a model computes otherwise than the checkpoint's own."""
    return [
        f"{name} is {laid[name]}, the checkpoint's {stored[name]}; its weights know the latter"
        for name in stored
        if laid[name] != stored[name] and name not in _OF_TRAINING
    ]
