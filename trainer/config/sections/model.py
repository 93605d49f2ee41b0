"""Configuration sections of the model: a model file, keys that override it, and keys of ModernBERT only."""

import json
from dataclasses import Field, dataclass, fields, make_dataclass
from typing import Any

from bertdata.config.declared import derive_schemas, repeat_setting, setting
from trainer.config.model import ModelConfig
from trainer.config.model_file import read_model_file
from trainer.config.model_kinds import find_config_class
from trainer.config.modernbert import ModernBertConfig
from trainer.config.sections.section import Section

_FORMS = {"exact": "gelu", "tanh": "gelu_new"}
_GELUS = ("gelu", "gelu_new", "gelu_pytorch_tanh")


def apply_gelu_form(activation: str, form: str | None) -> str:
    """Return the name of the activation with gelu in the requested form.

    form: exact, tanh, or None to leave the activation as it is. Activations other than gelu never change.
    """
    if form is None or activation not in _GELUS:
        return activation
    same = form == "tanh" and activation == "gelu_pytorch_tanh"
    return activation if same else _FORMS[form]


@dataclass(frozen=True, kw_only=True)
class ModelKeys(Section):
    """Two keys about the model: its model file, and the form of gelu. ``MODEL_SECTION`` adds a key for each
    field of ModelConfig.
    """

    model_config: str | None = setting(
        None,
        "bert_config.json or config.json of the model; keys such as hidden_size override it",
        common=True,
    )
    gelu: str | None = setting(
        None,
        "form of the activation gelu: exact (error function) or tanh (the approximation in Google's "
        "programs) (default: exact)",
        ("exact", "tanh"),
    )

    def settings(self) -> dict[str, Any]:
        """Return arguments for ModelConfig: the model file's values, overridden by the keys of this section
        that are set.
        """
        settings = self.make_printed_settings()
        if "hidden_act" in settings:
            settings["hidden_act"] = apply_gelu_form(settings["hidden_act"], self.gelu)
        return settings

    def make_printed_settings(self) -> dict[str, Any]:
        """Return the values of ``settings``, but with the activation named as in the model file.

        The key ``gelu``, which chooses a form of GELU, is ignored.
        """
        settings: dict[str, Any] = {}
        if self.model_config:
            settings = dict(read_model_file(self.model_config).keys)
        # Setting hidden_size alone also scales intermediate_size, which would otherwise keep the file's value
        # for another width. An explicit intermediate_size, in `inline`, still wins.
        values = self.values()
        inline = {name: values[name] for name in derive_schemas(ModelConfig) if values[name] is not None}
        if "hidden_size" in inline:
            ratio = find_config_class(settings | inline).inner_ratio
            settings["intermediate_size"] = int(ratio * inline["hidden_size"])
        return settings | inline

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about keys of the model file that are ignored."""
        return read_model_file(self.model_config).warnings if self.model_config else ()


_OTHERWISE = {
    "vocab_size": "the dataset's",
    "intermediate_size": "four times hidden_size",
    "classifier_dropout": "hidden_dropout_prob; modernbert: 0.0",
}
"""Default values as text for the help, for keys whose default is not the default of ModelConfig's field."""


_COMMON = ("hidden_size", "num_hidden_layers", "num_attention_heads", "model_type")
"""Keys of the model that the short help lists."""


def override_key(kind: type[ModelConfig], item: Field[Any]) -> tuple[str, Any, Any]:
    """Return name, type and declaration of the section key that overrides a field of the model class.

    The key's default is None, which means that it is not set.
    """
    otherwise = _OTHERWISE.get(item.name, json.dumps(item.default))
    marks = {"common": True} if item.name in _COMMON else {}
    text = f" (default: from model_config, else {otherwise})"
    key = repeat_setting(kind, item.name, default=None, help=text, **marks)
    of_value: Any = item.type
    return item.name, of_value | None, key


MODEL_SECTION: type[ModelKeys] = make_dataclass(
    "ModelSection",
    [override_key(ModelConfig, item) for item in fields(ModelConfig)],
    bases=(ModelKeys,),
    frozen=True,
    kw_only=True,
)
"""Section of the model's keys: those of ModelKeys, and one for each field of ModelConfig."""


MODERNBERT_SECTION: type[Section] = make_dataclass(
    "ModernBertSection",
    [
        override_key(ModernBertConfig, item)
        for item in fields(ModernBertConfig)
        if item.name not in derive_schemas(ModelConfig)
    ],
    bases=(Section,),
    frozen=True,
    kw_only=True,
)
"""Section of the keys that only a ModernBERT has."""
