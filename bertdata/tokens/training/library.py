"""The packages of the extra vocab, imported when a vocabulary is trained."""

import os
from importlib import import_module
from typing import Any

from bertdata.errors import MissingExtraError, install_extra


def import_tokenizers() -> Any:
    """The tokenizers library, in one thread. MissingExtraError where it is not installed."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return _import("tokenizers", "train-vocab")


def import_sentencepiece() -> Any:
    """The package sentencepiece. MissingExtraError where it is not installed."""
    return _import("sentencepiece", "train-vocab --kind unigram")


def _import(package: str, user: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtraError(f"{user} needs the package {package}: {install_extra('vocab')}") from None
