"""Time and memory of the trainer's ``--compile-only`` with one of the configurations for an H100."""

from benchmarks.gpu.clock import add_peak_memory, time_call
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.sizes import Sizes
from benchmarks.gpu.updates import make_phase_data
from trainer.checkpoints.checkpoint import make_initial_state
from trainer.data.rows import find_rows
from trainer.run.compiling import compile_shapes
from trainer.run.planned_updates import PlannedUpdates
from trainer.run.runtime import find_model_config, make_model, open_runtime
from trainer.run.training_state import Training


def measure_compile_only(figures: Figures, sizes: Sizes, phase: str) -> None:
    """Measure the seconds and the peak memory of ``--compile-only``.

    phase: name of the configuration. The generated data have the same share of padding as its real data.
    """
    config = sizes.config(phase, compile_only=True)
    data = make_phase_data(config, sizes.phases[phase].fill)
    runtime, shape = open_runtime(config), find_model_config(config, data)
    training = Training(runtime, make_model(runtime, shape), make_initial_state(config, shape, data.digest))
    planned = PlannedUpdates(runtime, find_rows(config, data))
    seconds = time_call(lambda: compile_shapes(training, planned), sizes.device)
    figures.add("compile-only", seconds, "s")
    add_peak_memory(figures, sizes.device)
