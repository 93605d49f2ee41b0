"""Import of the standards' packages, which belong to the extra ``trust``."""

from importlib import import_module
from typing import Any

from bertdata.errors import MissingExtraError, install_extra


def load_package(module: str, asked_by: str) -> Any:
    """Import and return a module of a package of the extra ``trust``.

    Raises MissingExtraError if the package, or one that it needs, is not installed.

    module: full name of the module, such as ``model_signing.signing``.
    asked_by: words for the feature that needs the package, for the error message.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{asked_by} needs the package {error.name}: {install_extra('trust')}"
        ) from error
