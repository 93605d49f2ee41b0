"""Compilation for the shapes of a phase, without training: ``--compile-only``."""

from contextlib import closing

from trainer.data.dealing import Rows
from trainer.run.planned_updates import PlannedUpdates
from trainer.run.runtime import Runtime
from trainer.run.training import Training


def compile_shapes(runtime: Runtime, training: Training, rows: Rows, planned: PlannedUpdates) -> Training:
    """Compile for every usual shape of a micro-batch, without training."""
    form = planned.form(runtime, rows)
    runtime.log("compiling")
    blanks = [[blank] for blank in form.blanks()]
    for micro_batches in blanks:
        training.compile([micro_batches])
    if not blanks:
        with closing(planned.loader(runtime, rows, form, training.state)) as loader:
            batches = [next(loader).batches for _ in range(runtime.device.updates_per_call)]
        training.compile(batches)
    kind = "packed rows" if planned.examples_per_row > 1 else "examples"
    shapes = f"micro-batches of {planned.batch_size} {kind}, {form.describe()}"
    runtime.log(f"compiled for {runtime.device.describe()}, {shapes}; nothing was trained")
    training.is_over = True
    return training
