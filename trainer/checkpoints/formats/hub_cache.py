"""Pre-trained models by name, from the files that Hugging Face's programs have downloaded."""

import os
from collections.abc import Mapping
from pathlib import Path

from bertdata.errors import MissingInputError
from bertdata.io import storage

SIZES = {"base": "bert-base-uncased", "large": "bert-large-uncased-whole-word-masking"}
"""The models that Habana's launcher means by a size."""

_ORGANISATION = "google-bert"


def find_pretrained(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The path of a checkpoint. For a name such as ``bert-base-uncased``, that of its downloaded files.

    A path that exists goes before a name. MissingInputError for a name that was not downloaded.
    """
    if not _is_name(name) or storage.exists(name) or storage.exists(f"{name}.index"):  # of TensorFlow
        return name
    model = SIZES.get(name, name)
    home = environment.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    cache = Path(environment.get("HF_HUB_CACHE") or f"{home}/hub")
    for repository in (model, f"{_ORGANISATION}/{model}"):
        found = _newest(cache / f"models--{repository.replace('/', '--')}")
        if found is not None:
            return str(found)
    repository, folder = model if "/" in model else f"{_ORGANISATION}/{model}", model.rpartition("/")[2]
    raise MissingInputError(
        f"{name}: no such file or directory, and {model} is not among the models in {cache}; on a machine "
        f"with a network `hf download {repository} --local-dir {folder}` (package huggingface_hub) "
        "gets a published model, whose directory is given in place of the name"
    )


def _is_name(text: str) -> bool:
    """True for ``NAME`` and ``ORGANISATION/NAME``."""
    return bool(text) and "://" not in text and text.count("/") <= 1 and not text.startswith(("/", ".", "~"))


def _newest(folder: Path) -> Path | None:
    """The files of the revision that the name stands for, else of the only one."""
    reference = folder / "refs" / "main"
    if reference.is_file():
        snapshot = folder / "snapshots" / reference.read_text(encoding="utf-8", errors="replace").strip()
        if snapshot.is_dir():
            return snapshot
    there = sorted((folder / "snapshots").glob("*"))
    return there[0] if len(there) == 1 else None
