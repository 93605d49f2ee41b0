"""The updates that a run will make: how many there are, how large they are, and from which rows."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bertdata.io import storage
from trainer.checkpoints.checkpoint import State
from trainer.checkpoints.reading import read_state
from trainer.config.schedules.form import Schedule
from trainer.config.settings import Config
from trainer.data.batches import Form
from trainer.data.cache.forecast import AtOnce, Forecast
from trainer.data.cache.shard_cache import ShardCache, format_bytes
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader, forecast_needs, make_dealer, make_order
from trainer.data.reading import WHOLE_FILES, Reading, choose_reading, describe_streams
from trainer.run.data_cache import (
    MachineReads,
    check_cache_size,
    check_temporary_room,
    describe_reads,
    find_machine_copies,
    measure_reads,
    sum_over_machine,
)
from trainer.run.mixture_epochs import log_epochs
from trainer.run.start_point import find_resumed_checkpoint
from trainer.update.worker import Runtime


class PlannedUpdates:
    """The updates that this run makes in a phase, from number ``start`` to ``last``.

    batch_size: number of rows in a micro-batch. A row is an example, or several examples that are packed
    together.
    accumulation: number of micro-batches per update that each copy of the model computes.
    examples_per_row: average number of examples packed in a row. It is 1 without packing.
    examples: number of examples per update over all workers. It is an estimate if rows are packed.
    interval: number of examples trained on between two evaluations. 0: evaluate only after the last update.
    machine: numbers of the copies of the model that this machine's workers train.
    """

    def __init__(self, runtime: Runtime, rows: Rows) -> None:
        config, copies = runtime.config, runtime.copies
        self.runtime, self.rows, self.start = runtime, rows, 0
        self.examples_per_row = rows.examples_per_row
        self.batch_size, self.accumulation = rows.micro_batches(config, copies, self.examples_per_row)
        self.examples = round(copies * self.batch_size * self.accumulation * self.examples_per_row)
        self.interval = 0
        if config.data.eval_data is not None:
            self.interval = config.evaluation.interval(self.examples)
        self.machine = [runtime.model_share.copy]

    @property
    def last(self) -> int:
        return find_last_update(self.runtime.config, self.start)

    def form(self, accumulation: int | None = None) -> Form:
        """Return the object that makes the tensors of micro-batches, either flat (all sequences end to end)
        or padded.

        Micro-batches get one of a few sizes, so that the model is compiled for few sizes.
        accumulation: number of micro-batches per copy and update, or None for the planned number.
        """
        runtime, device = self.runtime, self.runtime.device
        return make_form(
            self.rows,
            batch_size=self.batch_size,
            padded=runtime.has_rows,
            token_budget=runtime.config.data.token_budget,
            micro_batches=runtime.copies * (accumulation or self.accumulation),
            few_widths=device.compiles or device.needs_rows,
            multiple=runtime.config.update.token_multiple,
        )

    def count_examples(self, update: int) -> int:
        """Return the number of examples in this update, over all workers."""
        return self.examples

    def add_warmup(self, schedule: Schedule) -> Schedule:
        """Return the learning-rate schedule with the warm-up that growing updates need.

        In this class all updates have the same size, so the schedule is returned unchanged.
        """
        return schedule

    def loader(self, form: Form, state: State) -> Loader:
        """Return the loader of this worker's micro-batches. It begins at the state's position in the data."""
        config, share, device = self.runtime.config, self.runtime.model_share, self.runtime.device

        def warn(message: str) -> None:
            # In fine-tuning, leave out the warning that workers share a file, because all features are in one
            # file.
            if not config.is_finetuning:
                self.runtime.log(f"warning: {message}")

        return self.make_new_loader(
            form=form,
            batch_size=self.batch_size,
            accumulation=self.accumulation * device.replicas,
            workers=share.copies,
            rank=share.copy,
            seed=config.data.seed,
            open_files=state.open_files,
            chunk_rows=state.chunk_rows,
            position=state.position,
            first_update=state.step,
            prepare=device.prepare,
            machine=self.machine,
            epochs=(self.last - state.step) * self.examples / self.rows.data.examples,
            unchecked_files=state.unchecked_files,
            warn=warn,
        )

    def make_new_loader(self, **settings: Any) -> Loader:
        """Return a loader of the planned rows.

        settings: all other arguments of ``Loader``.
        """
        return Loader(self.rows, **settings)

    @cached_property
    def reading(self) -> Reading:
        """The way in which the files of the training data are read. With open_files auto, a run that resumes
        goes on as its checkpoint says. All workers ask for this.
        """
        return Reading(*self.runtime.on_rank_0(self._choose_reading))

    def _choose_reading(self) -> Reading:
        config, rows = self.runtime.config, self.rows
        if (state := self._resumed_state) is not None and config.data.open_files == "auto":
            kept = Reading(state.open_files, state.chunk_rows)
            # Rows that cannot be divided into streams are another run's, which is refused later by name.
            if rows.is_shareable or not kept.chunk_rows:
                return kept
        files = sum(count > 0 for _, count in rows.data.file_rows)
        longest = rows.layout.max_seq_length
        return choose_reading(config.data.open_files, files, longest, is_shareable=rows.is_shareable)

    @cached_property
    def _resumed_state(self) -> State | None:
        """The state of the checkpoint from which this phase goes on, or None. Only rank 0 asks for this."""
        config = self.runtime.config
        path = None if config.run.compile_only else find_resumed_checkpoint(config)
        state = None if path is None else read_state(path)
        return state if state is not None and state.phase == config.phase else None

    def prepare_cache(self) -> None:
        """Check that there is room for copies of remote files, and log what this machine reads.

        All workers call this. An error on any worker ends all workers.
        """
        runtime, data = self.runtime, self.rows.data
        self.machine = find_machine_copies(runtime)
        is_remote = any(storage.is_remote(shard.path) for shard in data.shards)
        if not is_remote:
            keys = runtime.config.data
            if keys.cache_dir is not None and not (keys.generated_data or runtime.config.is_finetuning):
                runtime.log(f"{data.name}: is on a local disk, so --cache-dir has no effect")
            return
        advice = ""
        if self.reading.chunk_rows and not runtime.on_rank_0(lambda: self._resumed_state is not None):
            advice = ", or --open-files 8, which reads fewer files at the same time"
        if not isinstance(data.copies, ShardCache):
            self._check_temporary_room(advice)
            return
        cache = data.copies
        if foreign := cache.folder.list_foreign():
            runtime.log(
                f"warning: {foreign[0]}: was not written by the cache, so it stays and does not count"
            )
        if not self.rows.follows_order:
            return
        forecast = self._forecast(self.machine)
        at_once = forecast.find_at_once(cache.sizes, 0)
        runtime.on_every_worker(lambda: check_cache_size(cache, at_once, advice))
        reads = runtime.collective.gather([runtime.collective.local_rank, *measure_reads(cache, forecast, 0)])
        runtime.log(
            describe_reads(cache, [MachineReads(*of_machine) for rank, *of_machine in reads if rank == 0])
        )

    def _check_temporary_room(self, advice: str) -> None:
        """Check that the temporary directory has room for the remote files that are read at the same time.

        Each worker of a machine has its own copies of the files that it reads.
        advice: end of the error, another remedy.
        """
        runtime, data, workers = self.runtime, self.rows.data, len(self.machine)
        each = f"each of the {workers} workers of this machine" if workers > 1 else "this machine"
        kept = ""
        if self.rows.follows_order:
            sizes = np.array([storage.is_remote(one.path) * (one.bytes or 0) for one in data.shards])
            own = self._forecast([]).find_at_once(sizes, 0)
            at_once = AtOnce(*sum_over_machine(runtime, own))
            runtime.on_every_worker(lambda: check_temporary_room(at_once, advice))
            kept = f", up to {format_bytes(at_once.bytes)} at the same time"
        if workers > 1 or self.reading.chunk_rows:
            runtime.log(
                f"{data.name}: {each} downloads the files that it reads{kept}; with --cache-dir DIR, the "
                "machine downloads each file once"
            )

    def _forecast(self, machine: Sequence[int]) -> Forecast:
        """Return the forecast of the files that the workers of a machine need.

        machine: numbers of their copies of the model. Empty: only this worker.
        """
        runtime, rows, seed = self.runtime, self.rows, self.runtime.config.data.seed
        dealer = make_dealer(
            rows,
            make_order(rows.data, seed, self.reading),
            self.reading,
            lengths=lambda file: np.zeros(0),  # they decide only which worker of a group gets a row
            batch_size=self.batch_size,
            accumulation=self.accumulation * runtime.device.replicas,
            workers=runtime.model_share.copies,
            rank=runtime.model_share.copy,
            seed=seed,
        )
        return forecast_needs(rows, dealer, machine)

    def log_reading(self, loader: Loader, state: State) -> None:
        """Log how many of more than 8 files are read at the same time, and how many each worker reads."""
        data = self.rows.data
        files = sum(rows > 0 for _, rows in data.file_rows)
        if not state.chunk_rows:
            if files > WHOLE_FILES.open_files and self.rows.follows_order:
                at_once = min(state.open_files * max(1, len(data.sources)), files)
                self.runtime.log(f"reading {at_once} of {files} files at the same time, each whole")
            return
        counts = self.runtime.collective.gather(loader.count_own_streams())
        self.runtime.log(describe_streams(files, state.open_files, state.chunk_rows, counts))

    def log_epochs(self, state: State) -> None:
        """Log how many epochs of each source the run has trained on, if the data are a mixture."""
        if self.rows.data.sources:
            log_epochs(
                self.rows.data,
                state,
                self.runtime.log,
                start=self.start,
                last=self.last,
                examples=self.examples,
                examples_per_row=self.examples_per_row,
            )

    def describe(self) -> str:
        """Describe in words how many updates the run makes, and the micro-batches and examples of an
        update.
        """
        runtime = self.runtime
        kind = ("cop", "ies", "y") if runtime.model_share.stages > 1 else ("worker",)
        copies = _format_count(runtime.copies, *kind)
        parts = f"{copies} x {_format_count(self.accumulation, 'micro-batch', 'es')}"
        rows = f"{self.batch_size}"
        if self.examples_per_row > 1:
            rows += f" packed rows x {self.examples_per_row:.3f} (on average)"
        each = f"{parts} x {rows} = {self.examples} examples"
        return f"updates {self.start} to {self.last} of {runtime.config.schedule.steps}, each of {each}"


def find_last_update(config: Config, start: int) -> int:
    """Return the number of the last update of a run.

    start: number of the update in its phase after which the run begins.
    """
    steps = config.schedule.steps
    return min(steps, start + (config.run.steps_this_run or steps))


def crosses_multiple(interval: int, before: int, now: int) -> bool:
    """Return True if one of the numbers after ``before``, up to ``now``, is a multiple of the interval.

    Returns False if the interval is 0.
    """
    return interval > 0 and now // interval > before // interval


def _format_count(number: int, noun: str, ending: str = "s", of_one: str = "") -> str:
    """Return the number with its noun, for example "1 worker" or "2 copies".

    ending: ending that the noun gets in the plural.
    of_one: ending that the noun gets in the singular.
    """
    return f"{number} {noun}{of_one if number == 1 else ending}"
