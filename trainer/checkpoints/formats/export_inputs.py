"""What the flags of a conversion have read besides the checkpoint, for the record of the conversion."""

from collections.abc import Iterator
from contextlib import suppress

from bertdata.dataset.provenance import check_vocabulary_manifest
from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.io.file_check import compute_file_md5
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.exported_model import (
    MODEL_CONFIGURATION,
    TOKENIZER_DIRECTORY,
    TOKENIZER_JSON,
    TRAINING_DATA,
    VOCABULARY,
)
from bertdata.lineages.run_steps import add_manifest
from bertdata.lineages.step import Input, LineageFile
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME
from bertdata.tokens.files import TOKENIZER_NAME
from bertdata.tokens.model_directory.files import NAMES, SPECIAL_TOKENS_NAME, TOKENIZER_CONFIG_NAME
from bertdata.tokens.training.manifest import make_manifest_path
from trainer.checkpoints.kept_tokenizer import find_training_data


def list_export_inputs(
    documents: RecordDocuments, *, vocab: str | None, model_config: str | None, train_data: str | None
) -> Iterator[Input]:
    """Yield what the flags of a conversion have read, each with the md5s of the files.

    documents: the records of the conversion, to which those of the vocabulary and of the dataset are added.
    vocab, model_config, train_data: arguments of ``convert``. None: the argument was not given, or not used.
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
