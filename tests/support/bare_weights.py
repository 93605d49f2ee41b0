"""Weights of another program that lie alone, without their model file and tokeniser."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from bertdata.lineages.step import Step
from bertdata.tokens.files import TokenizerFile
from tests.support.exported_models import export


def make_bare_weights(place: Path, file: TokenizerFile, shape: str) -> Path:
    """Make a directory with ``weights/model.safetensors``, and in ``model`` the files that belong to it."""
    exported = export(place, file, shape).directory
    (exported.parent / f"{shape}-bare").mkdir()
    whole = Path(shutil.move(exported, exported.parent / f"{shape}-bare" / "model"))
    (whole.parent / "weights").mkdir()
    shutil.copyfile(whole / "model.safetensors", whole.parent / "weights/model.safetensors")
    return whole.parent


def list_md5s(step: Step, role: str) -> dict[str, str | None]:
    """Return the md5s of the files of a step's input, by their names."""
    [given] = [one for one in step.inputs if one.role == role]
    return {file.name: file.md5 for file in given.files}


def rename_copies(paths: Sequence[Path], place: Path) -> Path:
    """Copy files to a new directory, each to a folder of its own and under another name."""
    for number, path in enumerate(paths):
        (place / str(number)).mkdir(parents=True)
        shutil.copyfile(path, place / str(number) / f"renamed-{number}")
    return place
