"""Local copies of what readers need of a run, or of another program's model, at a URL."""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from bertdata.errors import MissingInputError
from bertdata.io import storage
from bertdata.io.terminal import say_error
from bertdata.io.whole_directory import open_directory
from bertdata.lineages.documents import SOURCES
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME
from bertdata.tokens.kept_files import CONFIGURATION_NAME
from trainer.errors import CheckpointError
from trainer.remote.folders import find_copies_folder
from trainer.remote.stored_run import (
    CHECKPOINTS,
    STATE,
    StoredCheckpoint,
    StoredRun,
    download_checkpoint,
    download_file,
    find_best_number,
    name_checkpoint,
)

_KEPT_COPIES = 3
"""Number of checkpoints of a run whose copies stay in the cache: those that were used last."""
_TOKENIZER_NAMES = (VOCABULARY_NAME, TOKENIZER_NAME, CONFIGURATION_NAME)
_ATTEMPTS = 3
"""Number of times that the newest checkpoint is looked for, if the run removes it during the download."""
_NUMBERED = re.compile(rf"(.+)/{CHECKPOINTS}/step-(\d+)/?")


def resolve_checkpoint(url: str, *, newest_only: bool = False) -> str:
    """Return the URL of the checkpoint that a URL means: a run's best or newest whole one, or the URL itself.

    As for a local run, it is the checkpoint of the best evaluation if the run looks for it (keep_best).
    A warning names checkpoints that are newer but not whole. CheckpointError if a run has none that is whole.
    newest_only: whether the URL of a run always means its newest checkpoint.
    """
    run = StoredRun.read(url)
    if not run.checkpoints:
        return url
    passed_over = list[str]()
    newest = run.choose_newest_whole(passed_over)
    if newest is None:
        raise CheckpointError(f"{passed_over[0]}; no checkpoint of this run is whole")
    say_error(*(f"trainer: warning: {fault}; it is passed over" for fault in passed_over))
    return newest.url if newest_only else _choose_best(run, newest).url


def _choose_best(run: StoredRun, newest: StoredCheckpoint) -> StoredCheckpoint:
    """Return the checkpoint of a run's best evaluation, and print a line about it if it is not the newest.

    newest: the newest checkpoint that is whole. It is returned if there is no best one.
    """
    state = newest.read_state()
    number = find_best_number(state)
    if number is None or number == newest.number:
        return newest
    of_what = f"the best {state['best']['metric']} ({state['best']['value']:.5g})"
    newest_name = name_checkpoint(newest.number)
    try:
        best = run.get_checkpoint(number)
        best.check_is_whole()
    except (CheckpointError, MissingInputError):
        say_error(f"trainer: {run.url}: checkpoint {number} with {of_what} is missing: taking {newest_name}")
        return newest
    say_error(
        f"trainer: {run.url}: taking {name_checkpoint(number)} with {of_what}; the newest is {newest_name}"
    )
    return best


def bring_checkpoint(path: str) -> str:
    """Return the local path of a checkpoint. If the path is a URL, download what it means.

    path: a run, a checkpoint, or a directory, file or prefix of another program's weights. A local path is
    returned unchanged. MissingInputError if there is nothing at the URL.
    """
    if not storage.is_remote(path):
        return path
    for left in reversed(range(_ATTEMPTS)):
        url = resolve_checkpoint(path)
        try:
            return _bring(url)
        except MissingInputError:
            if url == path or not left:
                raise
    raise AssertionError("unreachable")


def _bring(url: str) -> str:
    """Download the checkpoint, the directory or the files at a URL, and return the local path."""
    if numbered := _NUMBERED.fullmatch(url):
        return str(bring_numbered(numbered[1], int(numbered[2])))
    names = StoredRun.read(url).others
    if names:
        return str(_bring_directory(url, names))
    return str(_bring_files(url))


def bring_numbered(run_url: str, number: int) -> Path:
    """Download a checkpoint of a run, its tokeniser and its records into the run's directory of copies.

    Returns the local path of the checkpoint. MissingInputError if the run has no such checkpoint.
    """
    run = StoredRun.read(run_url)
    folder = find_copies_folder(run_url)
    path = download_checkpoint(run.get_checkpoint(number), folder)
    kept = {name for name in run.others if name.startswith(f"{SOURCES}/")}
    for name in sorted(kept | (set(run.others) & set(_TOKENIZER_NAMES))):
        download_file(storage.join(run.url, name), folder / name)
    os.utime(path)
    _remove_unused(path.parent)
    return path


def list_new_checkpoints(run_url: str, after: int) -> list[StoredCheckpoint]:
    """Return the checkpoints of a run with numbers above ``after`` that are whole, in ascending order."""
    found = []
    for number, checkpoint in StoredRun.read(run_url).checkpoints.items():
        if number > after:
            with suppress(CheckpointError, MissingInputError):
                checkpoint.check_is_whole()
                found.append(checkpoint)
    return found


def bring_report_files(run_url: str) -> Path:
    """Download what a report about a run shows: its logs, and the state of its newest whole checkpoint.

    Returns the local directory. It has no weights.
    """
    run = StoredRun.read(run_url)
    if not run.others and not run.checkpoints:
        raise MissingInputError(f"{run_url}: no such directory")
    folder = find_copies_folder(run_url).with_name("report")
    with open_directory(folder, lambda one, other: False) as growing:
        for name in run.others:
            if "/" not in name and not name.endswith((".html", ".safetensors")):
                download_file(storage.join(run.url, name), growing / name)
        newest = run.choose_newest_whole([])
        if newest is not None:
            target = growing / CHECKPOINTS / newest.url.rpartition("/")[2] / STATE
            download_file(storage.join(newest.url, STATE), target)
    return folder


def _remove_unused(checkpoints: Path) -> None:
    """Remove the copies of checkpoints that were not used for longest."""
    copies = sorted(checkpoints.glob("step-*"), key=lambda path: path.stat().st_mtime)
    for path in copies[:-_KEPT_COPIES]:
        shutil.rmtree(path, ignore_errors=True)


def _bring_directory(url: str, names: tuple[str, ...]) -> Path:
    """Download all files of a directory, such as another program's model."""
    folder = find_copies_folder(url)
    with open_directory(folder, lambda one, other: False) as growing:
        for name in names:
            download_file(storage.join(url, name), growing / name)
    return folder


def _bring_files(url: str) -> Path:
    """Download a file, or all files whose names begin with a prefix, and the small files next to them.

    These are the model's settings and its vocabulary.
    """
    parent, base = storage.get_parent(url), storage.get_base_name(url)
    there = [name for name in StoredRun.read(parent).others if "/" not in name]
    wanted = [name for name in there if name == base or name.startswith(f"{base}.")]
    if not wanted:
        raise MissingInputError(f"{url}: no such file or directory")
    wanted += [name for name in there if name.endswith((".json", ".txt")) and name not in wanted]
    return _bring_directory(parent, tuple(wanted)) / base
