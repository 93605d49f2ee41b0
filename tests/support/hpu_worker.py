"""Runs the trainer's scenarios of test_hpu.py. Usage: ``hpu_worker.py SCENARIOS``.

SCENARIOS is a file with a JSON list of objects:

    name         output goes to NAME.err and the exit status to NAME.status, in the file's directory
    runs         lists of trainer arguments. Each list is a start, one after another in one process
    environment  variables to set before the package is imported
    stand_in     true if habana_frameworks can be imported
    mutation     the mistake to make in the adapter: one of MUTATIONS, or ""
    check        a check to make instead of runs: one of CHECKS, or ""

Each scenario runs in a separate process, forked from this one after it has imported everything that a run
needs. A worker of torchrun runs its only scenario itself. Headings divide the record of the stand-in's calls.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

STAND_INS = str(Path(__file__).resolve().parent / "stand_ins")
sys.path.insert(0, STAND_INS)

import torch  # noqa: E402
from recording import mark  # noqa: E402

from bertdata.records import ShardLayout  # noqa: E402
from trainer.__main__ import main  # noqa: E402
from trainer.config.model import ModelConfig  # noqa: E402
from trainer.config.settings import Config  # noqa: E402
from trainer.data.batches import Batch  # noqa: E402
from trainer.data.examples import Rows  # noqa: E402
from trainer.data.generated import generate_data  # noqa: E402
from trainer.data.loader import Loader  # noqa: E402
from trainer.data.padded_rows import RowForm  # noqa: E402
from trainer.data.row_batches import RowBatch  # noqa: E402
from trainer.devices import hpu as adapter  # noqa: E402
from trainer.devices.device import Device  # noqa: E402
from trainer.devices.opening import find_device  # noqa: E402
from trainer.model.headed import BertForPreTraining  # noqa: E402
from trainer.run.evaluation import Evaluation  # noqa: E402
from trainer.run.training_state import Training  # noqa: E402
from trainer.tasks.pretraining import Pretraining  # noqa: E402
from trainer.update.device_step import DeviceOptimiserStep  # noqa: E402

Hpu = adapter.Hpu


def leave_out(name: str) -> Callable[[], None]:
    """Return a function that removes the named method, so that the base class's method is called."""
    return lambda: setattr(Hpu, name, getattr(Device, name, lambda self: None))


def mark_step_before_the_step() -> None:
    step, take = Hpu.after_step, DeviceOptimiserStep.take

    def mark_and_take(self: DeviceOptimiserStep, *values: Any) -> None:
        step(self._device)  # type: ignore[arg-type]
        take(self, *values)

    DeviceOptimiserStep.take = mark_and_take  # type: ignore[method-assign]
    leave_out("after_step")()


def no_autocast() -> None:
    Hpu.autocast = lambda self, precision: nullcontext()  # type: ignore[method-assign]


def variable_not_set() -> None:
    adapter.os = SimpleNamespace(environ={})  # type: ignore[attr-defined]


def no_fused_lamb() -> None:
    adapter.find_fused_optimiser = lambda *_, **__: None  # type: ignore[assignment]


def lamb_that_does_not_clip() -> None:
    Hpu.clips_in_step = property(lambda self: False, lambda self, value: None)  # type: ignore[assignment]


def blocking_copies() -> None:
    Hpu.move = lambda self, batch: batch.map(lambda one: one.to("hpu"))  # type: ignore[method-assign]


def not_compiled() -> None:
    Hpu.compile = lambda self, learner: None  # type: ignore[method-assign]


def shapes_that_vary() -> None:
    move = Hpu.move

    def cut_and_move(self: adapter.Hpu, batch: Batch) -> Batch:
        assert isinstance(batch, RowBatch)
        filled = int((batch.next_sentence_labels >= 0).sum())
        return move(self, batch.slice_rows(0, filled))

    Hpu.move = cut_and_move  # type: ignore[method-assign]


def bridge_imported_before() -> None:
    """Import Habana's bridge in lazy mode, then remove the variable, as torch's autoload may do."""
    os.environ["PT_HPU_LAZY_MODE"] = "1"
    importlib.import_module("habana_frameworks.torch")
    del os.environ["PT_HPU_LAZY_MODE"]


MUTATIONS: dict[str, Callable[[], None]] = {
    "no mark_step after backward": leave_out("after_backward"),
    "no mark_step after the step": leave_out("after_step"),
    "mark_step before the step": mark_step_before_the_step,
    "no autocast": no_autocast,
    "variable not set": variable_not_set,
    "no FusedLamb": no_fused_lamb,
    "FusedLamb does not clip": lamb_that_does_not_clip,
    "batch left on the host": leave_out("move"),
    "blocking copies without position ids": blocking_copies,
    "not compiled": not_compiled,
    "generator not seeded": leave_out("seed"),
    "shapes that vary": shapes_that_vary,
    "bridge imported before": bridge_imported_before,
}


def unknown_calls() -> None:
    """Print the error of each call that the stand-in refuses."""
    for text in UNKNOWN:
        try:
            exec(text, {"torch": torch})
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        else:
            print(f"not refused: {text}")


def tied_weights() -> None:
    """Print what Module.to makes of two names for one weight, and of the model's shared embeddings."""
    device = find_device(Config.of(device="hpu", device_options={"mode": "eager"}))
    pair = torch.nn.ModuleList([torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8, bias=False)])
    pair[1].weight = pair[0].weight
    print(len(list(pair.parameters())), "then", len(list(pair.to("hpu").parameters())))
    shape = {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = device.place(BertForPreTraining(ModelConfig(**shape, intermediate_size=32)))
    print([name for name, weight in model.named_parameters() if weight.shape == (64, 16)])
    layout = ShardLayout(max_seq_length=16, max_predictions_per_seq=4)
    data = generate_data(layout, vocabulary_size=64, seed=1)
    loader = Loader(
        Rows(data), form=RowForm(), batch_size=2, accumulation=1, workers=1, rank=0, seed=1, open_files=1
    )
    (batch,) = next(loader).batches
    loader.close()
    learner = partial(Pretraining().outcome, model)
    device.forward(learner, batch).loss.backward()
    unused = sorted(set(range(64)) - set(batch.input_ids.flatten().tolist()))
    reached = model.bert.embeddings.word_embeddings.weight.grad[unused].abs().sum(1) > 0
    print("the head's gradient reaches rows that no input has:", bool(unused) and bool(reached.all()))


def examination() -> None:
    print(adapter.examine())


UNKNOWN = [
    "import habana_frameworks.torch.gpu_migration",
    "import habana_frameworks.torch.core as htcore; htcore.mark_steps()",
    "import habana_frameworks.torch.core as htcore; htcore.mark_step(wait=True)",
    "import habana_frameworks.torch.core as htcore; htcore.mark_step()",
    "import habana_frameworks.torch.hpu as hthpu; hthpu.set_seed(1)",
    "from habana_frameworks.torch.hpex.optimizers import FusedLAMB",
    "from habana_frameworks.torch.hpex.optimizers import FusedLamb; FusedLamb([], lr=1, momentum=0.9)",
    "from habana_frameworks.torch.hpex.optimizers import FusedLamb\n"
    "FusedLamb([{'params': [torch.nn.Parameter(torch.ones(2))]}, {'params': []}])",
    "from habana_frameworks.torch.hpex.normalization import FusedClipNorm; FusedClipNorm([])",
    "torch.compile(torch.nn.Linear(2, 2), backend='habana')",
    "torch.compile(torch.nn.Linear(2, 2), backend='hpu_backend', dynamo=True)",
    "torch.autocast('hpu', torch.float32)",
]
CHECKS = {"unknown calls": unknown_calls, "tied weights": tied_weights, "examination": examination}


def run(scenario: dict[str, Any]) -> int:
    """Run a scenario. Returns the status of the first failed start, or of the last start."""
    os.environ.update(scenario["environment"])
    if not scenario["stand_in"]:
        sys.path.remove(STAND_INS)
    if scenario["mutation"]:
        MUTATIONS[scenario["mutation"]]()
    if scenario["check"]:
        CHECKS[scenario["check"]]()
        sys.stdout.flush()
    divide()
    for number, arguments in enumerate(scenario["runs"]):
        mark("resume" if number else "init")
        if number and "MASTER_PORT" in os.environ:  # torchrun's own store still holds the first meeting
            os.environ["MASTER_PORT"] = scenario["second_port"]
            os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
        if status := main(arguments):
            return status
    return 0


def divide() -> None:
    """Write a heading into the record before each update, checkpoint and evaluation."""
    update, save, measure = Training.update, Training.save, Evaluation.measure

    def marked_update(self: Training, *values: Any) -> Any:
        mark(f"update {self.state.step + 1}")
        return update(self, *values)

    def marked_save(self: Training, *values: Any) -> None:
        mark("checkpoint")
        save(self, *values)

    def marked_measure(self: Evaluation, *values: Any, **named: Any) -> Any:
        mark("evaluation")
        return measure(self, *values, **named)

    Training.update, Training.save = marked_update, marked_save  # type: ignore[method-assign]
    Evaluation.measure = marked_measure  # type: ignore[method-assign]


def warm_up(place: Path) -> None:
    """Import everything that a run imports, once, before scenarios are forked."""
    sizes = ["--hidden-size=16", "--num-hidden-layers=1", "--num-attention-heads=2", "--batch-size=1"]
    words = [
        "--device=cpu",
        "--generated-data",
        f"--output-dir={place}/warm up",
        "--steps=1",
        "--no-progress-bar",
    ]
    if main(["pretrain", *sizes, *words]):
        raise AssertionError("the trainer does not run on the processor")


def run_apart(scenario: dict[str, Any], place: Path) -> None:
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        (place / f"{scenario['name']}.status").write_text(str(status))
        return
    with (place / f"{scenario['name']}.err").open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    status = 70
    try:
        status = run(scenario)
    except SystemExit as stop:
        status = int(stop.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    scenarios = json.loads(path.read_text())
    if "RANK" in os.environ:
        sys.exit(run(scenarios[0]))
    warm_up(path.parent)
    for scenario in scenarios:
        run_apart(scenario, path.parent)
