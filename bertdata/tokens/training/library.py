"""Imports the optional packages that are needed to train a vocabulary."""

import os
import re
from importlib import import_module
from typing import Any

from bertdata.errors import MissingExtraError, install_extra

_OLDEST = {"tokenizers": (0, 20), "sentencepiece": (0, 2)}
"""Oldest supported version of each package. The tests train vocabularies with these versions too."""


def import_tokenizers() -> Any:
    """Import the tokenizers library, and limit it to one thread.

    Raises MissingExtraError if the library is not installed, or if its version is too old.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return _import_package("tokenizers", "train-vocab")


def import_sentencepiece() -> Any:
    """Import the package sentencepiece.

    Raises MissingExtraError if the package is not installed, or if its version is too old.
    """
    return _import_package("sentencepiece", "train-vocab --kind unigram")


def _import_package(package: str, user: str) -> Any:
    """Import a package, and check its version.

    user: command that needs the package, for the error message.
    """
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
