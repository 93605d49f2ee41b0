"""The record of a conversion (lineage.json): its settings, its checkpoint and the files that flags named."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import torch

from bertdata import __version__
from bertdata.dataset.companion_files import CARD_NAME
from bertdata.dataset.provenance import check_vocabulary_manifest
from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.io.file_check import compute_file_md5
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.exported_model import (
    LINEAGE_NAME,
    MODEL_CONFIGURATION,
    TOKENIZER_DIRECTORY,
    TOKENIZER_JSON,
    TRAINING_DATA,
    VOCABULARY,
    make_export_record,
)
from bertdata.lineages.run_steps import add_manifest
from bertdata.lineages.step import Input, LineageFile
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME
from bertdata.tokens.files import TOKENIZER_NAME
from bertdata.tokens.model_directory.files import NAMES, SPECIAL_TOKENS_NAME, TOKENIZER_CONFIG_NAME
from bertdata.tokens.training.manifest import make_manifest_path
from trainer.checkpoints.any_checkpoint import OURS, Checkpoint
from trainer.checkpoints.kept_tokenizer import find_training_data
from trainer.checkpoints.records import add_checkpoint_record


def make_conversion_record(
    checkpoint: Checkpoint,
    to: str,
    *,
    kind: str | None,
    moments: bool,
    lower_case: bool | None,
    vocab: str | None,
    model_config: str | None,
    train_data: str | None,
) -> Callable[[str], bytes]:
    """Return a function that makes the file lineage.json of the converted model, which says where it is from.

    The function's argument is the directory with all other files of the model. A model card is not listed,
    since its readers may edit it.

    checkpoint: the checkpoint that is converted.
    The other arguments are those of ``convert``.
    """
    settings: dict[str, object] = {"to": to, "moments": moments, "task": checkpoint.task}
    if kind is not None:  # a directory may hold weights of several formats
        settings["from"] = kind
    if lower_case is not None:  # it decides the files of the tokeniser
        settings["lower_case"] = lower_case
    if checkpoint.kind == OURS:  # it says itself what model it is, so the file was not read
        model_config = None
    documents = RecordDocuments()
    source = add_checkpoint_record(checkpoint.path, documents, checkpoint.kind)
    inputs = list(_list_inputs(documents, vocab=vocab, model_config=model_config, train_data=train_data))

    def make_record(directory: str) -> bytes:
        return make_export_record(
            directory,
            [name for name in storage.list_files(directory) if name not in (LINEAGE_NAME, CARD_NAME)],
            settings=settings,
            versions={"bertdata": __version__, "torch": torch.__version__},
            source=source,
            documents=documents,
            inputs=inputs,
        )

    return make_record


def _list_inputs(
    documents: RecordDocuments, *, vocab: str | None, model_config: str | None, train_data: str | None
) -> Iterator[Input]:
    """Yield what the flags of a conversion have read, each with the md5s of the files.

    documents: the records of the conversion, to which those of the vocabulary and of the dataset are added.
    vocab, model_config, train_data: arguments of ``convert``. None: not given, or not used.
    """
    if vocab is not None:
        yield _make_tokenizer_input(vocab, documents)
    if model_config is not None:
        yield Input(role=MODEL_CONFIGURATION, files=(_describe_file(model_config),))
    # Without a manifest, a dataset has no tokeniser.
    dataset = find_training_data(train_data, given=True)
    if dataset is not None and dataset.manifest is not None:
        yield Input(role=TRAINING_DATA, record=add_manifest(dataset.path, documents))


def _make_tokenizer_input(vocab: str, documents: RecordDocuments) -> Input:
    """Return the files of the tokeniser that the user has named.

    vocab: a vocabulary or its name, a tokenizer.json, or a model's directory.
    documents: the manifest of the vocabulary is added, if ``train-vocab`` wrote one.
    """
    if storage.is_directory(vocab):
        return Input(role=TOKENIZER_DIRECTORY, files=_describe_files(vocab, (*NAMES, DICTIONARY_NAME)))
    path = find_vocabulary(vocab)
    if storage.get_base_name(path) == TOKENIZER_NAME:
        # Its special tokens are also read from the files next to it.
        names = (TOKENIZER_NAME, TOKENIZER_CONFIG_NAME, SPECIAL_TOKENS_NAME)
        return Input(role=TOKENIZER_JSON, files=_describe_files(storage.get_parent(path) or ".", names))
    if path != vocab:
        return Input(role=VOCABULARY, files=(_describe_file(path, vocab),))
    file = _describe_file(path)
    beside = make_manifest_path(path)
    manifest = storage.read_if_present(beside)
    if manifest is not None:
        # Without a sound manifest, the vocabulary counts as the user's own.
        with suppress(ManifestError):
            check_vocabulary_manifest(manifest, beside, str(file.md5))
            documents.add(manifest, beside)
    return Input(role=VOCABULARY, files=(file,))


def _describe_files(directory: str, names: tuple[str, ...]) -> tuple[LineageFile, ...]:
    """Return those of the named files that a directory has."""
    paths = (storage.join(directory, name) for name in names)
    return tuple(_describe_file(path) for path in paths if storage.exists(path))


def _describe_file(path: str, name: str = "") -> LineageFile:
    """Return the name, size and md5 of a file. name: the name in place of the file's own, or ""."""
    return LineageFile(
        name=name or storage.get_base_name(path), bytes=storage.read_size(path), md5=compute_file_md5(path)
    )
