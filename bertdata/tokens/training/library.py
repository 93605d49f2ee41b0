"""Imports the optional packages that train vocabularies."""

import os
import re
from importlib import import_module
from typing import Any

from bertdata.errors import MissingExtraError, install_extra

_OLDEST = {"tokenizers": (0, 20), "sentencepiece": (0, 2)}
"""The oldest supported release of each package. The tests also train vocabularies with these releases."""


def import_tokenizers() -> Any:
    """Import the tokenizers library, limited to one thread. MissingExtraError if it is missing or too old."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return _import_package("tokenizers", "train-vocab")


def import_sentencepiece() -> Any:
    """Import the package sentencepiece. MissingExtraError if it is missing or too old."""
    return _import_package("sentencepiece", "train-vocab --kind unigram")


def _import_package(package: str, user: str) -> Any:
    """Import a package and check its version. user: the command that needs it, for messages."""
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
