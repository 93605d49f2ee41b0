"""The rule of outputs for a directory of text, which may hold the articles that it is made of."""

from collections.abc import Iterable

from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.outputs import refuse_inputs
from bertdata.io.real_paths import real_path

EXTRACTED = "extracted"
"""The directory of articles that the Beam pipeline makes of a dump, within that of the text."""


def refuse_text_inputs(output: str, inputs: Iterable[str | None]) -> None:
    """Raise SettingsError where the output is an input, holds one or lies within one.

    Finished articles in ``OUTPUT/extracted`` may be there: that is a directory with a manifest of its own,
    whose files the text stage never touches.
    """
    articles = storage.join(output, EXTRACTED)
    paths = [path for path in inputs if path]
    if any(_lies_in(path, articles) for path in paths) and storage.exists(
        storage.join(articles, MANIFEST_NAME)
    ):
        paths = [path for path in paths if not _lies_in(path, articles)]
    refuse_inputs(output, paths)


def _lies_in(path: str, directory: str) -> bool:
    return f"{real_path(path)}/".startswith(f"{real_path(directory)}/")
