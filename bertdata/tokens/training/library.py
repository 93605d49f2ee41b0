"""The packages of the extra vocab, imported when a vocabulary is trained."""

import os
import re
from importlib import import_module
from typing import Any

from bertdata.errors import MissingExtraError, install_extra

_OLDEST = {"tokenizers": (0, 20), "sentencepiece": (0, 2)}
"""The first release of each package with which a vocabulary can be trained. Tests train with this one too."""


def import_tokenizers() -> Any:
    """Return the tokenizers library, in one thread. MissingExtraError where it is missing or too old."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return _import("tokenizers", "train-vocab")


def import_sentencepiece() -> Any:
    """Return the package sentencepiece. MissingExtraError where it is missing or too old."""
    return _import("sentencepiece", "train-vocab --kind unigram")


def _import(package: str, user: str) -> Any:
    try:
        module = import_module(package)
    except ImportError:
        raise MissingExtraError(f"{user} needs the package {package}: {install_extra('vocab')}") from None
    found, oldest = module.__version__, _OLDEST[package]
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < oldest:
        least = ".".join(map(str, oldest))
        raise MissingExtraError(
            f"{user} needs {package} {least} or newer, found {found}: {install_extra('vocab')}"
        )
    return module
