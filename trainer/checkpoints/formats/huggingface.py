"""Hugging Face's format, which Graphcore's PyTorch programs also use: a directory with config.json and
model.safetensors, or a single file of weights.
"""

import json
from collections.abc import Mapping, Sequence

from bertdata.errors import MissingInputError
from bertdata.io import storage
from bertdata.tokens.model_directory.keys import warn_of_unread_keys
from trainer.checkpoints.any_checkpoint import (
    DECODER,
    DECODER_BIAS,
    WORD_BIAS,
    Checkpoint,
    Stored,
    StoredTensor,
    unpad_vocabulary,
)
from trainer.checkpoints.checkpoint import write_safetensors
from trainer.checkpoints.formats.absent_parts import TRANSFORMERS, add_missing_biases, drop_word_head
from trainer.checkpoints.formats.config_file import (
    GOOGLES_NAME,
    TRANSFORMERS_NAME,
    read_description,
    read_exported_length,
)
from trainer.checkpoints.formats.labels import LabelKeys, make_label_keys, read_label_keys
from trainer.checkpoints.formats.megatron import from_megatron, is_megatron, to_megatron
from trainer.checkpoints.formats.modernbert import from_modernbert, to_modernbert
from trainer.checkpoints.formats.nvidia import from_pytorch_names
from trainer.checkpoints.formats.output_layer import resolve_output_layer
from trainer.checkpoints.formats.pytorch_file import collect_tensors, read_torch
from trainer.checkpoints.formats.roberta import add_second_bias, from_roberta, to_roberta
from trainer.checkpoints.formats.wrapped_names import unwrap_names
from trainer.checkpoints.safetensors_files import INDEX, read_indexed, read_safetensors
from trainer.config.model import MEGATRON
from trainer.config.model_file import ModelFile
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig

WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
"""Names that the file of weights in a directory may have. The first that exists is read."""

_NESTING_KEYS = ("model", "state_dict", "model_state_dict", "module")
"""Keys under which training programs nest the weights in a file that also contains an optimiser's state."""

_UNSUPPORTED_CLASSIFIERS = ("ForTokenClassification", "ForMultipleChoice")
"""Ends of the names of transformers' classes whose classifier does not classify whole sequences."""

_UNREADABLE_FILES = {
    "tf_model.h5": "weights of TensorFlow",
    "flax_model.msgpack": "weights of Flax",
    "adapter_model.safetensors": "an adapter of PEFT, which merge_and_unload() puts into its model's weights",
    "adapter_model.bin": "an adapter of PEFT, which merge_and_unload() puts into its model's weights",
    "model.fp16.safetensors": "a variant of the weights; rename it to model.safetensors",
    "pytorch_model.bin.index.json": "weights of several files of torch.save",
    "model.onnx": "a graph of ONNX",
}
"""Files of weights that this trainer cannot read, with text that says what each is."""

_ARCHITECTURES = {
    "qa_outputs.": "BertForQuestionAnswering",
    "classifier.": "BertForSequenceClassification",
    "cls.seq_relationship.": "BertForPreTraining",
    "cls.": "BertForMaskedLM",
    "": "BertModel",
}
"""For each prefix of tensor names, transformers' class for a model with such tensors. The first prefix with
which a tensor's name begins decides.
"""


def read_huggingface(path: str, model_config: str | None = None, kind: str = "huggingface") -> Checkpoint:
    """Read a checkpoint in Hugging Face's format.

    path: its directory, or its file of weights.
    model_config: model file to read instead of the config.json next to the weights.
    kind: the program that wrote it, "huggingface" or "graphcore".
    """
    directory, file = storage.get_parent(path), path
    if storage.is_directory(path):
        directory, file = path, find_weights(path) or storage.join(path, WEIGHT_FILES[0])
        _refuse_unreadable_weights(directory, file)
    found = read_description(directory, model_config, names=(TRANSFORMERS_NAME, GOOGLES_NAME))
    tensors = unwrap_names(_read_tensors(file), file)
    config = found.config
    classes = found.file.classes
    if isinstance(config, RobertaConfig):
        weights = from_roberta(tensors, config)
    elif isinstance(config, ModernBertConfig):
        weights = from_modernbert(
            tensors, config, answers=any("QuestionAnswering" in name for name in classes)
        )
    else:
        weights = from_pytorch_names(tensors, file)
        if config is not None and is_megatron(weights):
            weights = from_megatron(weights, config.num_hidden_layers)
    weights, warnings = _drop_unsupported_classifier(weights, classes, path)
    warnings += warn_of_unread_keys(directory)
    labels = _read_labels(found.file, directory, model_config)
    return resolve_output_layer(
        Checkpoint(
            kind=kind,
            path=path,
            config=config,
            weights=weights,
            label_names=labels.names,
            problem=labels.problem,
            longest=read_exported_length(directory),
            warnings=(*found.file.warnings, *warnings),
        )
    )


def _read_labels(file: ModelFile, directory: str, model_config: str | None) -> LabelKeys:
    """Return the labels in the model file.

    If --model-config names a file without labels, take them from the directory's config.json.
    """
    labels = read_label_keys(file.label_keys, model_config or directory)
    if labels == LabelKeys() and model_config is not None:
        beside = read_description(directory, names=(TRANSFORMERS_NAME,)).file
        labels = read_label_keys(beside.label_keys, directory)
    return labels


def _refuse_unreadable_weights(directory: str, file: str) -> None:
    """Raise MissingInputError for a directory with weights in a format that cannot be read."""
    if storage.exists(file):
        return
    for name, what in _UNREADABLE_FILES.items():
        if storage.exists(storage.join(directory, name)):
            raise MissingInputError(
                f"{directory}: holds {name}, {what}, which is not read; expected one of "
                f"{', '.join(WEIGHT_FILES)}, as save_pretrained of transformers writes them"
            )


def _drop_unsupported_classifier(
    weights: dict[str, StoredTensor], classes: Sequence[str], path: str
) -> tuple[dict[str, StoredTensor], list[str]]:
    """Remove the head from the weights if it classifies tokens or multiple choices instead of sequences.

    Its tensors have the same names as the head that classifies sequences, but another meaning. Return the
    remaining weights, and a list with a warning if a head was removed.
    classes: names of the transformers classes in config.json.
    """
    other = next((name for name in classes if name.endswith(_UNSUPPORTED_CLASSIFIERS)), None)
    kept = {name: tensor for name, tensor in weights.items() if not name.startswith("classifier.")}
    if other is None or len(kept) == len(weights):
        return weights, []
    return kept, [f"{path}: its classifier is that of a {other}, which is no task here: it is left out"]


def find_weights(directory: str) -> str | None:
    """Return the path of the directory's file of weights, or None."""
    paths = (storage.join(directory, name) for name in WEIGHT_FILES)
    return next((path for path in paths if storage.exists(path)), None)


def _read_tensors(file: str) -> Stored:
    """Return the tensors in a file of weights."""
    if file.endswith(INDEX):
        return read_indexed(file)
    if file.endswith(".safetensors"):
        return read_safetensors(file)
    values = read_torch(file)
    inner = [
        values[key]
        for key in _NESTING_KEYS
        if isinstance(values, dict) and isinstance(values.get(key), Mapping)
    ]
    return collect_tensors(inner[0] if inner else values, file)


def write_huggingface(checkpoint: Checkpoint, directory: str) -> str:
    """Write config.json and model.safetensors for transformers' from_pretrained. Return the directory."""
    config = checkpoint.expect_config()
    if not isinstance(config, ModernBertConfig):
        checkpoint = add_missing_biases(drop_word_head(checkpoint), TRANSFORMERS, has_norms_first=True)
        config = checkpoint.expect_config()
    weights = unpad_vocabulary(checkpoint.weights, config)
    if DECODER in weights and WORD_BIAS in weights and not isinstance(config, ModernBertConfig):
        weights[DECODER_BIAS] = weights[WORD_BIAS]  # transformers 5 reads an untied bias by this name only
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
        found = found.replace("Bert", "Roberta")
        weights = add_second_bias(to_roberta(weights, config))
        keys = config.for_transformers()
    elif isinstance(config, ModernBertConfig):
        found, weights = f"Modern{found}", to_modernbert(weights, config)
        keys = config.for_transformers()
    values = {"architectures": [checkpoint.architecture or found], **keys, **checkpoint.token_ids}
    if (head := checkpoint.head_labels) is not None:
        values |= make_label_keys(head)
    storage.make_directory(directory)
    with storage.open_output(storage.join(directory, "config.json")) as file:
        file.write(json.dumps(values, indent=2).encode() + b"\n")
    with storage.open_output(storage.join(directory, WEIGHT_FILES[0])) as file:
        write_safetensors(file, weights)
    return directory
