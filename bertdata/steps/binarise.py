"""The step that converts text to fairseq's binary dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertdata.io.outputs import refuse_input_as_output
from bertdata.steps.open_dataset import require_package
from bertdata.steps.progress import GivenProgress, StepProgress, choose_progress
from bertdata.steps.values import AnyPath, AnyPaths, convert_path, count_workers, list_paths

if TYPE_CHECKING:
    from bertdata.build.binarise import BinarisedText

STAGE = "binarising"


def binarise(
    sources: AnyPaths,
    target: AnyPath,
    *,
    tokenizer: AnyPath,
    workers: int | None = None,
    progress: GivenProgress = None,
) -> BinarisedText:
    """Convert lines of text to a fairseq dataset directory, as ``bertdata convert --to fairseq`` does.

    sources: files, patterns, or directories written by ``segment``.
    target: directory to write.
    tokenizer: a tokenizer.json, a model's directory or a ``dict.txt``. It must name all special tokens that
        fairseq needs: cls, sep, pad, mask and unk.
    workers: number of processes. None: one per core.
    progress: function called with a StepProgress.
    """
    require_package("numpy", "numpy", "fairseq's binarised lines")
    from bertdata.build.binarise import binarise_text
    from bertdata.build.given_parts import find_parts
    from bertdata.tokens.load import find_tokenizer_file, pin_file

    on_progress = choose_progress(progress)

    def report_progress(done: int, total: int, line: str) -> None:
        on_progress(StepProgress(stage=STAGE, done=done, total=total, unit="files", finished=line))

    directory, given = convert_path(target), list_paths(sources)
    refuse_input_as_output(directory, [*given, convert_path(tokenizer)])
    parts = find_parts(given).parts
    refuse_input_as_output(directory, parts)
    return binarise_text(
        parts,
        directory,
        pin_file(find_tokenizer_file(convert_path(tokenizer))),
        workers=count_workers(workers),
        on_progress=report_progress,
    )
