"""Pre-trained models by name, in the cache of Hugging Face's programs."""

import os
from collections.abc import Mapping
from pathlib import Path

from bertdata.errors import MissingInputError
from bertdata.io import storage

SIZES = {"base": "bert-base-uncased", "large": "bert-large-uncased-whole-word-masking"}
"""Models that Habana's launcher lets a user name by their size: base or large."""

_ORGANISATION = "google-bert"


def find_pretrained(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of a pre-trained model. The name may be a path, or a model's name such as
    bert-base-uncased.

    A path that exists is returned unchanged. A model's name gives the directory with its files in the cache.
    MissingInputError if the model is not in the cache.
    """
    if _is_path(name):
        return name
    model, cache = SIZES.get(name, name), _find_cache(environment)
    for repository in (model, f"{_ORGANISATION}/{model}"):
        found = _find_revision(_make_folder(cache, repository))
        if found is not None:
            return str(found)
    repository, folder = model if "/" in model else f"{_ORGANISATION}/{model}", model.rpartition("/")[2]
    raise MissingInputError(
        f"{name}: no such file or directory, and {model} is not among the models in {cache}; on a machine "
        f"with a network `hf download {repository} --local-dir {folder}` (package huggingface_hub) "
        "gets a published model, whose directory is given in place of the name"
    )


def find_hub_name(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the full name on the hub of a model in the cache, such as google-bert/bert-base-uncased.

    The result is "" for a path, and for a model that is not in the cache.
    """
    if _is_path(name):
        return ""
    model, cache = SIZES.get(name, name), _find_cache(environment)
    names = (model, f"{_ORGANISATION}/{model}")
    return next((one for one in names if _find_revision(_make_folder(cache, one)) is not None), "")


def _is_path(name: str) -> bool:
    """Return whether a name means a path, and not a model in the cache."""
    # NAME.index exists if the name is the prefix of TensorFlow's files
    return not _is_model_name(name) or storage.exists(name) or storage.exists(f"{name}.index")


def _find_cache(environment: Mapping[str, str]) -> Path:
    """Return the directory of the cache of models."""
    home = environment.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    return Path(environment.get("HF_HUB_CACHE") or f"{home}/hub")


def _make_folder(cache: Path, repository: str) -> Path:
    """Return the directory of a model in the cache."""
    return cache / f"models--{repository.replace('/', '--')}"


def _is_model_name(text: str) -> bool:
    """Return whether the text has the form ``NAME`` or ``ORGANISATION/NAME``."""
    return bool(text) and "://" not in text and text.count("/") <= 1 and not text.startswith(("/", ".", "~"))


def _find_revision(folder: Path) -> Path | None:
    """Return the directory of the revision that ``main`` refers to, or the only revision, or None."""
    reference = folder / "refs" / "main"
    if reference.is_file():
        snapshot = folder / "snapshots" / reference.read_text(encoding="utf-8", errors="replace").strip()
        if snapshot.is_dir():
            return snapshot
    there = sorted((folder / "snapshots").glob("*"))
    return there[0] if len(there) == 1 else None
