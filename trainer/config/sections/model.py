"""Sections of the model: its file, the keys that override the file's, and those of a ModernBERT alone."""

import json
from dataclasses import Field, dataclass, fields, make_dataclass
from typing import Any

from bertdata.config.declared import schema_of, setting, setting_of
from trainer.config.model import ModelConfig
from trainer.config.model_file import read_model_file
from trainer.config.model_kinds import model_kind
from trainer.config.modernbert import ModernBertConfig
from trainer.config.sections.section import Section

_FORMS = {"exact": "gelu", "tanh": "gelu_new"}
_GELUS = ("gelu", "gelu_new", "gelu_pytorch_tanh")


def with_form(activation: str, form: str | None) -> str:
    """Return the activation with gelu in the given form, which None leaves. Others are as they are."""
    if form is None or activation not in _GELUS:
        return activation
    same = form == "tanh" and activation == "gelu_pytorch_tanh"
    return activation if same else _FORMS[form]


@dataclass(frozen=True, kw_only=True)
class ModelKeys(Section):
    """A file that describes the model. ``MODEL_SECTION`` adds keys that override the file's."""

    model_config: str | None = setting(
        None, "bert_config.json of the model; inline keys override it", common=True
    )
    gelu: str | None = setting(
        None,
        "form of the activation gelu: exact, by the error function, or tanh, the approximation of "
        "Google's programs (default: exact)",
        ("exact", "tanh"),
    )

    def settings(self) -> dict[str, Any]:
        """The keys of a ModelConfig: those of the model_config file, overridden by inline keys."""
        settings = self.described()
        if "hidden_act" in settings:
            settings["hidden_act"] = with_form(settings["hidden_act"], self.gelu)
        return settings

    def described(self) -> dict[str, Any]:
        """The keys of a ModelConfig as they are given, with the activation's name whatever its form."""
        settings: dict[str, Any] = {}
        if self.model_config:
            settings = dict(read_model_file(self.model_config).keys)
        values = self.values()
        inline = {name: values[name] for name in schema_of(ModelConfig) if values[name] is not None}
        if "hidden_size" in inline:
            ratio = model_kind(settings | inline).inner_ratio
            settings["intermediate_size"] = int(ratio * inline["hidden_size"])
        return settings | inline

    def warnings(self) -> tuple[str, ...]:
        """Warnings about keys of the model_config file that are not read."""
        return read_model_file(self.model_config).warnings if self.model_config else ()


_OTHERWISE = {
    "vocab_size": "the dataset's",
    "intermediate_size": "four times hidden_size",
    "classifier_dropout": "hidden_dropout_prob; modernbert: 0.0",
}
"""The usual value of a key that neither configuration nor file gives, where it is not ModelConfig's."""


def inline_key(kind: type[ModelConfig], item: Field[Any]) -> tuple[str, Any, Any]:
    """Name, type and declaration of the key that overrides a field of the class. None: not given."""
    otherwise = _OTHERWISE.get(item.name, json.dumps(item.default))
    key = setting_of(kind, item.name, default=None, help=f" (default: model_config's, else {otherwise})")
    of_value: Any = item.type
    return item.name, of_value | None, key


MODEL_SECTION: type[ModelKeys] = make_dataclass(
    "ModelSection",
    [inline_key(ModelConfig, item) for item in fields(ModelConfig)],
    bases=(ModelKeys,),
    frozen=True,
    kw_only=True,
)
"""The section of the model's keys: those of ModelKeys, and one for each of ModelConfig's."""


MODERNBERT_SECTION: type[Section] = make_dataclass(
    "ModernBertSection",
    [
        inline_key(ModernBertConfig, item)
        for item in fields(ModernBertConfig)
        if item.name not in schema_of(ModelConfig)
    ],
    bases=(Section,),
    frozen=True,
    kw_only=True,
)
"""The section of the keys that a ModernBERT alone has."""
