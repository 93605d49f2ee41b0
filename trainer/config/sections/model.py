"""Configuration sections of the model: its model file, and keys that override values of the file."""

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
    """Return the name of the activation function, with GELU in the requested form.

    activation: name of the activation. Any other activation than GELU is returned unchanged.
    form: "exact", "tanh", or None to leave GELU as it is.
    """
    if form is None or activation not in _GELUS:
        return activation
    same = form == "tanh" and activation == "gelu_pytorch_tanh"
    return activation if same else _FORMS[form]


@dataclass(frozen=True, kw_only=True)
class ModelKeys(Section):
    """Keys for the model file and the form of GELU. ``MODEL_SECTION`` adds a key for each field of
    ModelConfig.
    """

    model_config: str | None = setting(
        None,
        "bert_config.json or config.json of the model; keys such as hidden_size override the file's values",
        common=True,
    )
    gelu: str | None = setting(
        None,
        "form of the activation gelu: exact (error function) or tanh (the approximation in Google's "
        "programs) (default: exact)",
        ("exact", "tanh"),
    )

    def settings(self) -> dict[str, Any]:
        """Return arguments for ModelConfig: the values of the model file, or of this section's keys if they
        are set.
        """
        settings = self.make_printed_settings()
        if "hidden_act" in settings:
            settings["hidden_act"] = apply_gelu_form(settings["hidden_act"], self.gelu)
        return settings

    def make_printed_settings(self) -> dict[str, Any]:
        """Return the result of ``settings``, but ignore the key ``gelu``, which changes the activation's
        name.
        """
        settings: dict[str, Any] = {}
        if self.model_config:
            settings = dict(read_model_file(self.model_config).keys)
        # If only hidden_size is set, scale intermediate_size too, because the file's value belongs to another
        # hidden_size. If intermediate_size is set, `inline` has it and its value is used.
        values = self.values()
        inline = {name: values[name] for name in derive_schemas(ModelConfig) if values[name] is not None}
        if "hidden_size" in inline:
            ratio = find_config_class(settings | inline).inner_ratio
            settings["intermediate_size"] = int(ratio * inline["hidden_size"])
        return settings | inline

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about keys of the model file that are ignored."""
        return read_model_file(self.model_config).warnings if self.model_config else ()


_DEFAULT_TEXTS = {
    "vocab_size": "the dataset's",
    "intermediate_size": "four times hidden_size",
    "classifier_dropout": "hidden_dropout_prob; modernbert: 0.0",
}
"""Default values for the help, as text. They belong to keys whose default differs from the default of the
field in ModelConfig.
"""


_COMMON_KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "model_type")
"""Keys of the model that the short help lists."""


def declare_override_key(kind: type[ModelConfig], item: Field[Any]) -> tuple[str, Any, Any]:
    """Declare a configuration key that overrides a field of the model configuration. Return (name, type,
    declaration).

    The key's default is None, which means that it is not set.
    kind: class of the model configuration.
    item: the field of this class.
    """
    otherwise = _DEFAULT_TEXTS.get(item.name, json.dumps(item.default))
    marks = {"common": True} if item.name in _COMMON_KEYS else {}
    text = f" (default: from model_config, else {otherwise})"
    key = repeat_setting(kind, item.name, default=None, help=text, **marks)
    of_value: Any = item.type
    return item.name, of_value | None, key


MODEL_SECTION: type[ModelKeys] = make_dataclass(
    "ModelSection",
    [declare_override_key(ModelConfig, item) for item in fields(ModelConfig)],
    bases=(ModelKeys,),
    frozen=True,
    kw_only=True,
)
"""Section of the model's keys: those of ModelKeys, and one for each field of ModelConfig."""


MODERNBERT_SECTION: type[Section] = make_dataclass(
    "ModernBertSection",
    [
        declare_override_key(ModernBertConfig, item)
        for item in fields(ModernBertConfig)
        if item.name not in derive_schemas(ModelConfig)
    ],
    bases=(Section,),
    frozen=True,
    kw_only=True,
)
"""Section of the keys that only a ModernBERT has."""
