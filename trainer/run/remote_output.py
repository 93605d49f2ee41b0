"""Runs whose directory is a URL: the working directory in place of ``output_dir``, and copies of inputs.

The rest of the trainer works with local directories. Here a run's configuration gets them, before anything is
opened: a working directory for ``output_dir``, which rank 0 uploads to the URL, and downloaded copies for the
checkpoints that the run starts from. The recorded configuration keeps the URLs.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertdata.errors import BertDataError, MissingInputError, StorageError
from bertdata.io import storage
from trainer.checkpoints.checkpoint import find_checkpoints, get_checkpoints_folder
from trainer.config.model import ModelConfig
from trainer.config.settings import Config, format_flag
from trainer.errors import CheckpointError
from trainer.remote.copies import bring_checkpoint, bring_numbered, list_new_checkpoints, resolve_checkpoint
from trainer.remote.folders import find_copies_folder, find_working_folder
from trainer.remote.remote_run import Continuation, RemoteRun, Uploads, remove_strange_checkpoints
from trainer.remote.stored_run import StoredRun, download_file, name_checkpoint
from trainer.remote.uploader import LogFiles
from trainer.run.path_check import RUN_FILES, make_in_use_error
from trainer.update.worker import Runtime

_BYTES_OF_WEIGHT = 12
"""Bytes that a weight takes in a checkpoint: itself and two moments, in fp32."""
_STARTS = ("start_from_ckpt", "resume_from")
"""Keys that name a checkpoint or a run to start from."""


def localise(
    runtime: Runtime, phases: Sequence[Config], *, trains: bool = True
) -> tuple[Runtime, list[Config]]:
    """Replace the URLs of runs and checkpoints in the configuration by local directories.

    Checkpoints to start from are downloaded. Each machine has its own copies.
    trains: False if the run only evaluates. Then output_dir becomes the directory of downloaded copies.
    """
    names, changed = dict[str, str](), list[Config]()
    for config in phases:
        keys: dict[str, Any] = {}
        url = config.run.output_dir
        if url is not None and storage.is_remote(url):
            folder = str(find_working_folder(url) if trains else find_copies_folder(url))
            keys["output_dir"], names[folder] = folder, url.rstrip("/")
            if trains:
                keys["keep_checkpoints"] = config.run.keep_local_checkpoints
        for key in _STARTS:
            start = getattr(config.start, key)
            if start is not None and storage.is_remote(start):
                runtime.log(f"downloading {start}")
                local = _bring_start(runtime, start, newest_only=key == "resume_from")
                keys[key], names[local] = local, start
        changed.append(config.changed(**keys) if keys else config)
    if not names:
        return runtime, list(phases)
    remote = RemoteRun(names=names, recorded={"keep_checkpoints": phases[0].run.keep_checkpoints})
    return replace(runtime, config=changed[0], remote=remote), changed


def _bring_start(runtime: Runtime, url: str, *, newest_only: bool) -> str:
    """Download a checkpoint to start from, on each machine, and return its local path.

    Rank 0 chooses a run's best or newest checkpoint, so that all workers read the same.
    newest_only: whether it is always the newest.
    """
    chosen = runtime.on_rank_0(lambda: resolve_checkpoint(url, newest_only=newest_only))
    brought = runtime.collective.gather(runtime.on_machines(lambda: bring_checkpoint(chosen)))
    # A machine's workers follow its first one, which has downloaded the checkpoint.
    return str(next(path for path in reversed(brought[: runtime.collective.rank + 1]) if path is not None))


@contextmanager
def naming_urls(runtime: Runtime) -> Iterator[None]:
    """Let errors in the block name the URLs in place of the local directories that stand for them."""
    try:
        yield
    except BertDataError as error:
        if runtime.remote is not None:
            error.args = tuple(
                runtime.remote.name_urls(one) if isinstance(one, str) else one for one in error.args
            )
        raise


def open_output(
    runtime: Runtime, given: Sequence[Config], phases: Sequence[Config], stack: ExitStack
) -> Runtime:
    """Claim the run's URL, download what the run continues from, and upload until ``stack`` is closed.

    Does nothing if output_dir is local. Errors come before the model is built: no such bucket, no rights, no
    space, a directory that another run uses or has used.
    given: the configuration with URLs.
    phases: the configuration with local directories.
    """
    config = given[0]
    url = config.run.output_dir
    if url is None or not storage.is_remote(url) or config.run.compile_only or runtime.remote is None:
        return runtime
    stopping = runtime.collective.stopping
    uploads = Uploads(
        url,
        config.run.keep_checkpoints,
        log=runtime.log,
        on_lost=stopping.request,
        asked_to_stop=lambda: stopping.asked_at,
    )

    def claim_and_download() -> list[tuple[int, str]]:
        if not config.start.continues_here and not config.run.overwrite_output_dir:
            _check_is_free(url)
        stack.enter_context(uploads)
        number = config.start.resume_step
        if number is None and not config.start.resume and config.start.phase2:
            number = config.start.phase1_end_step
        return uploads.bring(
            Continuation(
                continues=config.start.continues_here,
                overwrites=config.run.overwrite_output_dir,
                number=number,
            )
        )

    known = [(number, md5) for number, md5 in runtime.on_rank_0(claim_and_download)]
    rank, folder = runtime.collective.rank, find_working_folder(url)
    # If neither the store nor rank 0's machine has anything of a continued run, another machine may.
    removes = bool(rank) and (bool(known) or not config.start.continues_here)
    runtime.on_machines(lambda: remove_strange_checkpoints(folder, known) if removes else None)
    if rank:
        return runtime
    return replace(runtime, remote=replace(runtime.remote, uploads=uploads))


def _check_is_free(url: str) -> None:
    """Raise DatasetError if the URL has the files of another run."""
    run = StoredRun.read(url)
    for used in RUN_FILES:
        if used in run.others or (used == "checkpoints" and run.checkpoints):
            raise make_in_use_error(url, used)


def check_room_for_checkpoints(runtime: Runtime, shape: ModelConfig) -> None:
    """Raise StorageError if a run at a URL has no room on this machine's disk for a checkpoint.

    Logs a warning if there is not enough room for all checkpoints that are kept here.
    shape: settings of the model.
    """
    url, config = find_output_url(runtime), runtime.config
    if url is None or config.run.compile_only:
        return
    folder = Path(str(config.run.output_dir))
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    # If the model is divided over machines, a machine has only a part of this.
    size = _BYTES_OF_WEIGHT * runtime.empty_model(shape).count_weights()
    takes = f"a checkpoint takes up to {size / 1e9:.3g} GB"
    facts = f"{folder.parent}: the disk has {free / 1e9:.3g} GB free, {takes}"
    remedy = "set BERTDATA_CACHE to a directory on a larger disk"
    if free < size:
        raise StorageError(f"{facts} before it is uploaded; {remedy}")
    missing = config.run.keep_checkpoints + 1 - len(find_checkpoints(str(folder)))
    if free < size * missing:
        runtime.log(f"warning: {facts}, and {missing} more will be there at the same time; {remedy}")


def begin_uploads(runtime: Runtime, later_than: int | None) -> None:
    """Begin to upload to the run's URL, just before the first update of a phase.

    later_than: number of the checkpoint that the run continues from, or None.
    """
    if runtime.remote is not None and runtime.remote.uploads is not None:
        runtime.remote.uploads.begin(later_than)


def remove_earlier_remote_run(runtime: Runtime) -> None:
    """Remove the checkpoints of an earlier run from the run's URL."""
    if runtime.remote is not None and runtime.remote.uploads is not None:
        runtime.remote.uploads.remove_earlier_run()


def localise_evaluation(runtime: Runtime, *, poll: bool = False) -> Runtime:
    """Replace the URLs in the configuration of a run that only evaluates, and download what is there.

    output_dir becomes a local directory with copies. It has the configured checkpoint or, without one, the
    best or newest, and resume_step is its number.
    poll: the run is polled for later checkpoints, which are downloaded when they are evaluated. So
    resume_step does not change.
    """
    given = runtime.config
    runtime, (config,) = localise(runtime, [given], trains=False)
    url = find_output_url(runtime)
    if url is None:
        return runtime
    folder = find_copies_folder(url)
    if given.start.start_from_ckpt is None:
        number = runtime.on_rank_0(lambda: _choose_number(url, config.start.resume_step, poll))
        runtime.on_machines(lambda: _remove_strange_copies(url, folder))
        if number is not None:
            runtime.on_machines(lambda: bring_numbered(url, number))
            config = config if poll else config.changed(resume_step=number)
    if runtime.collective.rank > 0:
        return replace(runtime, config=config)
    assert runtime.remote is not None
    # MLPerf's log is appended to.
    name = "mllog.txt"
    if config.loggers.mllog and storage.exists(storage.join(url, name)):
        download_file(storage.join(url, name), folder / name)
    return replace(runtime, config=config, remote=replace(runtime.remote, results=LogFiles(folder, url)))


def _choose_number(url: str, number: int | None, newest_only: bool) -> int | None:
    """Return the number of the checkpoint to evaluate, or None if the run has none yet.

    number: the configured number, or None for the best or newest checkpoint that is whole.
    newest_only: whether it is always the newest without a configured number.
    """
    run = StoredRun.read(url)
    if number is not None:
        return run.get_checkpoint(number).number
    if not run.checkpoints:
        return None
    return int(resolve_checkpoint(url, newest_only=newest_only).rpartition("-")[2])


def _remove_strange_copies(url: str, folder: Path) -> None:
    """Remove copies of checkpoints that the run at the URL does not have any more."""
    there = StoredRun.read(url).checkpoints
    for number, path in find_checkpoints(str(folder)).items():
        if number not in there:
            shutil.rmtree(path, ignore_errors=True)


def list_changed_flags(given: Config, config: Config) -> list[str]:
    """Return flags for the keys that ``localise_evaluation`` has changed.

    given: the configuration with URLs.
    config: the configuration with local directories.
    """
    before, after = given.values(), config.values()
    changed = [key for key in ("output_dir", *_STARTS, "resume_step") if before[key] != after[key]]
    return [f"{format_flag(key)}={after[key]}" for key in changed]


def find_output_url(runtime: Runtime) -> str | None:
    """Return the URL that the local output_dir stands for, or None if the user has named it."""
    return None if runtime.remote is None else runtime.remote.names.get(str(runtime.config.run.output_dir))


def list_later_checkpoints(runtime: Runtime, after: int) -> list[tuple[int, str]]:
    """Return number and local path of each checkpoint in output_dir with a number above ``after``.

    At a URL, they are not downloaded yet. Only rank 0 looks there, other workers get [].
    """
    folder, url = str(runtime.config.run.output_dir), find_output_url(runtime)
    if url is None:
        return [(number, str(path)) for number, path in find_checkpoints(folder).items() if number > after]
    if runtime.collective.rank > 0:
        return []
    try:
        found = list_new_checkpoints(url, after)
    except StorageError as error:  # the store may be away for a while; look again later
        runtime.log(f"warning: {error}")
        return []
    return [(one.number, str(get_checkpoints_folder(folder) / name_checkpoint(one.number))) for one in found]


def bring_later_checkpoint(runtime: Runtime, number: int) -> bool:
    """Download a checkpoint of the evaluated run on each machine, if the run is at a URL.

    Returns False if the run has removed it in the meantime.
    """
    url = find_output_url(runtime)
    if url is None:
        return True

    def bring() -> bool:
        try:
            bring_numbered(url, number)
        except (MissingInputError, CheckpointError):
            return False
        return True

    return False not in runtime.collective.gather(runtime.on_machines(bring))


def upload_results(runtime: Runtime) -> None:
    """Upload the files that an evaluation has written, if the run is at a URL. All workers call this."""
    if runtime.remote is not None:
        results = runtime.remote.results
        runtime.on_rank_0(lambda: None if results is None else results.upload_changed())
