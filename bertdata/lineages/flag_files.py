"""Files that ``--vocab`` and ``--model-config`` named: an export and a run list them in their records.

``lineage.json`` of an exported model and ``state.json`` of a checkpoint have the list ``inputs`` in the same
form: for each flag a role, and the names, sizes and md5s of the files that were read.
"""

from contextlib import suppress
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.io.file_check import compute_file_md5
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.step import Input, LineageFile
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME
from bertdata.tokens.files import TOKENIZER_NAME
from bertdata.tokens.model_directory.files import NAMES, SPECIAL_TOKENS_NAME, TOKENIZER_CONFIG_NAME
from bertdata.tokens.training.manifest import make_manifest_path

VOCABULARY = "vocabulary"
"""Role of the file that ``--vocab`` named: a vocabulary, or a tokenizer.json with another name. A published
vocabulary has its name, such as ``bert-base-uncased``, as the name of the file.
"""
TOKENIZER_JSON = "tokenizer.json"
"""Role of the file ``tokenizer.json`` that ``--vocab`` named, and of the files next to it that were read."""
TOKENIZER_DIRECTORY = "tokeniser"
"""Role of the files of a tokeniser in the directory that ``--vocab`` named."""
MODEL_CONFIGURATION = "model configuration"
"""Role of the file that ``--model-config`` named."""

FILE_ROLES = (VOCABULARY, TOKENIZER_JSON, TOKENIZER_DIRECTORY, MODEL_CONFIGURATION)
"""Roles of files that flags named."""
FOLDER_ROLES = (TOKENIZER_JSON, TOKENIZER_DIRECTORY)
"""Roles whose files must lie in one directory under their names, without other files of a tokeniser."""


def make_model_input(model_config: str) -> Input:
    """Return the model file that the user has named."""
    return Input(role=MODEL_CONFIGURATION, files=(_describe_file(model_config),))


def make_tokenizer_input(vocab: str, documents: RecordDocuments) -> Input:
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
        # imported here, because training without --vocab must not import the readers of text
        from bertdata.dataset.provenance import check_vocabulary_manifest

        # Without a sound manifest, the vocabulary counts as the user's own.
        with suppress(ManifestError):
            check_vocabulary_manifest(manifest, beside, str(file.md5))
            documents.add(manifest, beside)
    return Input(role=VOCABULARY, files=(file,))


def make_input_json(given: Input) -> dict[str, Any]:
    """Return what a flag named as the list ``inputs`` of a record stores it."""
    cited = {} if given.record is None else {"record": given.record}
    return {"role": given.role, "files": [file.as_json() for file in given.files], **cited}


def _describe_files(directory: str, names: tuple[str, ...]) -> tuple[LineageFile, ...]:
    """Return those of the named files that a directory has."""
    paths = (storage.join(directory, name) for name in names)
    return tuple(_describe_file(path) for path in paths if storage.exists(path))


def _describe_file(path: str, name: str = "") -> LineageFile:
    """Return the name, size and md5 of a file. name: the name in place of the file's own, or ""."""
    return LineageFile(
        name=name or storage.get_base_name(path), bytes=storage.read_size(path), md5=compute_file_md5(path)
    )
