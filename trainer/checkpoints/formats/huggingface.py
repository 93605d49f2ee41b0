"""Hugging Face's form, and Graphcore's: a directory with config.json and model.safetensors, or a file."""

import json

from bertdata.config.value_check import read_object
from bertdata.io import storage
from trainer.checkpoints.any_checkpoint import Checkpoint, Stored, unpadded
from trainer.checkpoints.checkpoint import write_safetensors
from trainer.checkpoints.formats.absent_parts import completed, without_word_head
from trainer.checkpoints.formats.config_file import read_config
from trainer.checkpoints.formats.megatron import from_megatron, is_megatron, to_megatron
from trainer.checkpoints.formats.modernbert import from_modernbert, to_modernbert
from trainer.checkpoints.formats.nvidia import from_pytorch_names
from trainer.checkpoints.formats.pytorch_file import read_torch, tensors_of
from trainer.checkpoints.formats.roberta import from_roberta, to_roberta
from trainer.checkpoints.safetensors_files import INDEX, read_indexed, read_safetensors
from trainer.config.model import MEGATRON
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig

WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
"""Names of a directory's file of weights, in order of preference."""

_ARCHITECTURES = {
    "qa_outputs.": "BertForQuestionAnswering",
    "classifier.": "BertForSequenceClassification",
    "cls.seq_relationship.": "BertForPreTraining",
    "cls.": "BertForMaskedLM",
    "": "BertModel",
}
"""transformers' classes by a head that they have; the first that fits."""


def read_huggingface(path: str, model_config: str | None = None, kind: str = "huggingface") -> Checkpoint:
    """The checkpoint of a directory or of a file of weights. kind: "huggingface" or "graphcore".

    model_config: a file in place of the config.json beside the weights.
    """
    directory, file = storage.parent(path), path
    if storage.is_directory(path):
        directory, file = path, find_weights(path) or storage.join(path, WEIGHT_FILES[0])
    config, tensors = read_config(directory, model_config), _tensors(file)
    if isinstance(config, RobertaConfig):
        weights = from_roberta(tensors, config)
    elif isinstance(config, ModernBertConfig):
        weights = from_modernbert(tensors, config, answers=_names_answers(directory, model_config))
    else:
        weights = from_pytorch_names(tensors, file)
        if config is not None and is_megatron(weights):
            weights = from_megatron(weights, config.num_hidden_layers)
    return Checkpoint(kind=kind, path=path, config=config, weights=weights)


def _names_answers(directory: str, model_config: str | None) -> bool:
    """True where config.json names a class that finds answers. Its head has a classification's names."""
    path = model_config or storage.join(directory, "config.json")
    classes = read_object(path).get("architectures") or []
    return any("QuestionAnswering" in str(name) for name in classes)


def find_weights(directory: str) -> str | None:
    """The path of the directory's file of weights, or None where there is none."""
    paths = (storage.join(directory, name) for name in WEIGHT_FILES)
    return next((path for path in paths if storage.exists(path)), None)


def _tensors(file: str) -> Stored:
    """The tensors of a file of weights."""
    if file.endswith(INDEX):
        return read_indexed(file)
    if file.endswith(".safetensors"):
        return read_safetensors(file)
    values = read_torch(file)
    return tensors_of(values["model"] if isinstance(values, dict) and "model" in values else values, file)


def write_huggingface(checkpoint: Checkpoint, directory: str) -> str:
    """Write config.json and model.safetensors for transformers' from_pretrained. Returns the directory."""
    config = checkpoint.expect_config()
    if not isinstance(config, ModernBertConfig):
        checkpoint = completed(without_word_head(checkpoint), "transformers", has_norms_first=True)
        config = checkpoint.expect_config()
    weights = unpadded(checkpoint.weights, config)
    found = next(
        name
        for beginning, name in _ARCHITECTURES.items()
        if any(weight.startswith(beginning) for weight in weights)
    )
    if found == "BertForPreTraining" and not any(name.startswith("cls.predictions.") for name in weights):
        found = "BertForNextSentencePrediction"
    keys = config.as_json()
    if config.megatron_residual_connection and not isinstance(config, ModernBertConfig):
        found = found.replace("Bert", "MegatronBert")
        keys["model_type"] = MEGATRON
        weights = to_megatron(weights, config.num_hidden_layers)
    if isinstance(config, RobertaConfig):
        found, weights = found.replace("Bert", "Roberta"), to_roberta(weights, config)
        keys = config.for_transformers()
    elif isinstance(config, ModernBertConfig):
        found, weights = f"Modern{found}", to_modernbert(weights, config)
        keys = config.for_transformers()
    values = {"architectures": [checkpoint.architecture or found], **keys, **checkpoint.token_ids}
    if (classifier := checkpoint.weights.get("classifier.weight")) is not None:
        names = {number: f"LABEL_{number}" for number in range(classifier.shape[0])}
        values |= {"id2label": names, "label2id": {name: number for number, name in names.items()}}
    storage.make_directory(directory)
    with storage.open_output(storage.join(directory, "config.json")) as file:
        file.write(json.dumps(values, indent=2).encode() + b"\n")
    with storage.open_output(storage.join(directory, WEIGHT_FILES[0])) as file:
        write_safetensors(file, weights)
    return directory
