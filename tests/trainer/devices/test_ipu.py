"""IPUs against a stand-in for PopTorch: its calls, its arithmetic, and refusals."""

import csv
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

from bertdata.errors import SettingsError
from tests.support.commands import Outcome
from tests.support.device_records import compare
from tests.support.fork_server import forking_python
from tests.support.launching import ROOT
from tests.support.training_runs import Trainer, losses, refuse, tensors
from trainer.__main__ import main
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.files import find_shipped_configs
from trainer.config.flags import make_config
from trainer.config.model import ModelConfig
from trainer.config.sections.devices import IpuSection
from trainer.config.settings import Config, get_device_key_schemas
from trainer.devices.ipu import device as ipu
from trainer.devices.ipu import options, stages
from trainer.devices.opening import find_device
from trainer.model.headed import BertForPreTraining
from trainer.run.evaluation import Evaluation
from trainer.run.strategies import find_strategy
from trainer.run.training_state import Training
from trainer.tasks import task as tasks
from trainer.tasks.choice import find_task
from trainer.update import ipu_programs as programs
from trainer.update.worker import Worker, hold_whole_model
from trainer.workers.collective import Collective
from trainer.workers.launchers import find_launcher, find_local_rank, find_rank

STAND_INS = ROOT / "tests" / "support" / "stand_ins"
PACKAGES = ("poptorch", "popdist", "recording")
SHAPE = ModelConfig(vocab_size=2000, hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
MOMENTS, NOTHING = "optimizer.safetensors", save({})
TINY = ("--config=graphcore_tiny_128_lamb", "--accumulation=2")
LARGE = (
    *(
        "--config=graphcore_large_128",
        "--optimiser=lamb-graphcore-pytorch",
        "--vocab-size=2000",
        "--hidden-size=32",
    ),
    *(
        "--num-attention-heads=2",
        "--batch-size=1",
        "--accumulation=10",
        "--replicas=2",
        "--eval-batch-size=5",
    ),
)
SMALL = (  # a tiny model in a precision that can be compared with another device's
    *("--config=graphcore_tiny_128_lamb", "--precision=fp32", "--hidden-size=32", "--vocab-size=2000"),
    *("--hidden-dropout-prob=0", "--batch-size=2", "--accumulation=2", "--warmup=1", "--steps=20"),
    *("--max-seq-length=64", "--max-predictions-per-seq=10", "--base-learning-rate=0.05"),
)


def forget() -> None:
    """Pretend that the process ended: the next start imports the stand-ins again and finds free IPUs."""
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
    ipu._find_popdist.cache_clear()


@pytest.fixture(autouse=True)
def poptorch(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(STAND_INS))
    forget()
    yield
    forget()


@pytest.fixture(scope="session")
def long_set(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> Path:
    """The sample corpus in examples of the sizes of Graphcore's first phase."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("long") / "set"
    sizes = ["--max-seq-length=128", "--max-predictions-per-seq=20", "--dupe-factor=1", "--workers=1"]
    words = ["create", *map(str, corpus), "--output", str(place), "--vocab", str(small_vocabulary_file)]
    assert main([*words, *sizes]) == 0
    return place


def words(place: Path, *more: object) -> list[str]:
    """A short run on the IPU; later words win."""
    return ["pretrain", "--device=ipu", f"--output-dir={place}", "--no-progress-bar", *map(str, more)]


def recorded_run(monkeypatch: pytest.MonkeyPatch, place: Path, data: Path, *more: str) -> Path:
    """The record of two updates, checkpoint and evaluation, then, after a restart, one more update."""
    record = place / "record"
    monkeypatch.setenv("BERTDATA_STAND_IN_RECORD", str(record))
    from recording import mark

    def marked(kind: type, name: str, heading: Callable[[Any], str]) -> None:
        plain = getattr(kind, name)

        def method(self: Any, *values: Any, **options: Any) -> Any:
            mark(heading(self))
            return plain(self, *values, **options)

        monkeypatch.setattr(kind, name, method)

    marked(Training, "update", lambda training: f"update {training.state.step + 1}")
    marked(Training, "save", lambda training: "checkpoint")
    marked(Evaluation, "measure", lambda evaluation: "evaluation")
    common = [
        *more,
        "--unverified",
        f"--train-data={data}",
        "--steps=20",
        "--warmup=10",
        "--checkpoint-every=0",
    ]
    evaluated = [f"--eval-data={data}", "--eval-examples=10", "--eval-every=0"]
    mark("init")
    assert main(words(place / "run", *common, *evaluated, "--steps-this-run=2")) == 0
    forget()
    mark("resume")
    assert main(words(place / "run", *common, "--resume", "--steps-this-run=1")) == 0
    return Path(f"{record}.0")


def test_the_calls_of_the_tiny_configuration_are_the_golden_files(monkeypatch, tmp_path, long_set):
    compare("ipu_tiny", recorded_run(monkeypatch, tmp_path, long_set, *TINY))


@pytest.mark.thorough
def test_the_calls_of_the_large_configuration_are_the_golden_files(monkeypatch, tmp_path, long_set):
    compare("ipu_large", recorded_run(monkeypatch, tmp_path, long_set, *LARGE))


MUTATIONS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "the heads begin no stage": (
        *(stages, "plan_pipeline"),
        lambda plain: lambda *given: stages.IpuPipeline(("",), (0,)),
    ),
    "the weights stay on the IPU": (programs.IpuPrograms, "fetch", lambda plain: lambda self: None),
    "the moments stay in the checkpoint": (
        programs.IpuPrograms,
        "_restore_moments",
        lambda plain: lambda self: None,
    ),
    "the loss is not marked": (
        *(programs.ModelWithLoss, "__init__"),
        lambda plain: (
            lambda self, poptorch, *rest: plain(
                self, SimpleNamespace(identity_loss=lambda loss, reduction: loss), *rest
            )
        ),
    ),
    "an option is left out": (
        *(options, "set_shared_options"),
        lambda plain: lambda device, made, *rest: made.outputMode(device.poptorch.OutputMode.All),
    ),
    "the rate is set after the update": (programs.IpuPrograms, "update", lambda plain: late_update),
    "moments are kept in 16 bits": (
        *(options, "make_optimiser"),
        lambda plain: (
            lambda poptorch, config, preset, groups: poptorch.optim.LAMB(
                [{"params": groups[0]["params"], "weight_decay": 0.0003}],
                **{
                    "lr": 0.001,
                    "eps": 1e-6,
                    "betas": (0.9, 0.999),
                    "bias_correction": False,
                    "loss_scaling": 1.0,
                },
                **{"accum_type": torch.float16, "first_order_momentum_accum_type": torch.float16},
                second_order_momentum_accum_type=torch.float32,
            )
        ),
    ),
}


def late_update(self: Any, updates: Any, learning_rate: float, first: Any) -> list[torch.Tensor]:
    values = plain_update(self, updates, learning_rate, first)
    self._training.setOptimizer(self.optimiser_step.optimiser)
    return values


plain_update = programs.IpuPrograms.update


@pytest.mark.thorough
@pytest.mark.parametrize("name", MUTATIONS)
def test_another_call_order_or_option_than_the_golden_files_is_seen(monkeypatch, tmp_path, long_set, name):
    place, attribute, mutate = MUTATIONS[name]
    mutant = mutate(getattr(place, attribute))
    monkeypatch.setattr(place, attribute, mutant)
    for module in (ipu, programs):
        if hasattr(module, attribute):
            monkeypatch.setattr(module, attribute, mutant)
    record = recorded_run(monkeypatch, tmp_path, long_set, *TINY, "--batch-size=8")
    with pytest.raises(AssertionError, match="ipu_tiny"):
        compare("ipu_tiny", record)


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--optimiser=lamb-graphcore-pytorch", "--replicas=2"],
        ["--optimiser=lamb-mlperf", "--lr-schedule=polynomial_decay", "--clipping=none"],
        ["--optimiser=adamw", "--clipping=per_update", "--max-grad-norm=0.5"],
        ["--optimiser=adamw-bert", "--lr-schedule=polynomial_decay", "--clipping=none"],
        ["--optimiser=momentum"],
        ["--optimiser=sgd", "--hidden-layers-per-stage=1", "--accumulation=5"],
        ["--optimiser=sgd", "--reduction-type=sum", "--replicas=2"],
        ["--pipeline-schedule=Sequential", "--hidden-layers-per-stage=1"],
        ["--matmul-serialize-factor=4", "--enable-recomputation", "--precision=fp32", "--weight-decay=0.1"],
        ["--pack-on-load", "--packed-accumulation=rows"],
    ],
    ids=lambda more: " ".join(more) or "lamb-graphcore",
)
@pytest.mark.thorough_after_first
def test_losses_are_those_of_a_processor(trainer, tmp_path, training_set, more):
    common = [*SMALL, "--unverified", f"--train-data={training_set}", "--steps-this-run=4", *more]
    data = [f"--eval-data={training_set}", "--eval-examples=21", "--eval-batch-size=5", "--eval-every=0"]
    for device in ("ipu", "cpu"):
        outcome = trainer(*words(tmp_path / device, *common, *data), f"--device={device}")
        assert outcome.status == 0, outcome.err
    ours, theirs = losses(tmp_path / "ipu"), losses(tmp_path / "cpu")
    assert len(ours) == 4
    assert [row["lr"] for row in ours] == [row["lr"] for row in theirs]
    for row, wanted in zip(ours, theirs, strict=True):
        assert row == pytest.approx(wanted, rel=5e-6, abs=1e-5)
    assert results(tmp_path / "ipu") == pytest.approx(results(tmp_path / "cpu"), rel=5e-6, abs=1e-5)
    weights, wanted = ({**load(tensors(tmp_path / name, 4)["model.safetensors"])} for name in ("ipu", "cpu"))
    # Adam scales a gradient near 0 up, so its rounding error becomes a whole step.
    assert all(torch.allclose(weights[name], wanted[name], atol=5e-4) for name in wanted)
    moments, wanted = (load(tensors(tmp_path / name, 4).get(MOMENTS, NOTHING)) for name in ("ipu", "cpu"))
    assert moments.keys() == wanted.keys()
    assert all(torch.allclose(moments[name], wanted[name], atol=1e-5) for name in wanted)


@pytest.mark.parametrize(
    ("reduction", "replicas", "workers", "divisor"),
    [("mean", None, 2, 1), ("sum", None, 1, 1), ("sum", None, 2, 2), ("sum", 4, 2, 4), ("sum", 4, 1, 4)],
)
def test_poptorchs_sum_over_replicas_becomes_their_mean(reduction, replicas, workers, divisor):
    """A worker has one replica, or its share of the configured ones."""
    given = {} if replicas is None else {"replicas": replicas}
    worker = SimpleNamespace(
        config=Config.of(device="ipu", reduction_type=reduction, **given),
        model=torch.nn.Module(),
        task=SimpleNamespace(outcome=lambda model, batch: tasks.Outcome(torch.tensor(12.0), torch.zeros(2))),
        collective=SimpleNamespace(size=workers),
        device=SimpleNamespace(replicas=(replicas or workers) // workers),
    )
    identity = SimpleNamespace(identity_loss=lambda loss, reduction: loss)
    program = programs.ModelWithLoss(identity, worker)
    program.batch = SimpleNamespace(changed=lambda: None, tensors=dict)
    loss, _ = program()
    assert loss.item() == 12 / divisor


@pytest.mark.parametrize("more", [[], ["--hidden-layers-per-stage=1", "--accumulation=5"]])
def test_masked_blocks_have_the_losses_of_a_processor(trainer, tmp_path, block_set, more):
    common = [*SMALL, "--unverified", f"--train-data={block_set}", "--steps-this-run=2", *more]
    data = [f"--eval-data={block_set}", "--eval-examples=21", "--eval-batch-size=5", "--eval-every=0"]
    found = []
    for device in ("ipu", "cpu"):
        outcome = trainer(*words(tmp_path / device, *common, *data), f"--device={device}")
        assert outcome.status == 0, outcome.err
        with (tmp_path / device / "training.csv").open(encoding="utf-8") as file:
            rows = [float(row["mlm_loss"]) for row in csv.DictReader(file)]
        found.append([*rows, *results(tmp_path / device).values()])
    assert len(found[0]) > 2
    assert found[0] == pytest.approx(found[1], rel=5e-6, abs=1e-5)


def results(run: Path) -> dict[str, float]:
    lines = (run / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.thorough_after_first
def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(trainer, tmp_path, precision):
    common = [*SMALL, "--generated-data", f"--precision={precision}", "--optimiser=lamb-graphcore-pytorch"]
    common += ["--loss-scaling=64", "--checkpoint-every=2"]
    for place, more in {"once": ["--steps-this-run=4"], "twice": ["--steps-this-run=2"]}.items():
        assert trainer(*words(tmp_path / place, *common, *more)).status == 0
        forget()
    assert trainer(*words(tmp_path / "twice", *common, "--resume", "--steps-this-run=2")).status == 0
    assert tensors(tmp_path / "twice", 4) == tensors(tmp_path / "once", 4)
    assert losses(tmp_path / "twice") == losses(tmp_path / "once")


def test_weights_of_16_bits_are_saved_in_32(trainer, tmp_path):
    common = [*SMALL, "--generated-data", "--precision=fp16", "--loss-scaling=64", "--steps-this-run=1"]
    assert trainer(*words(tmp_path / "run", *common)).status == 0
    saved = tensors(tmp_path / "run", 1)
    assert {tensor.dtype for data in saved.values() for tensor in load(data).values()} == {torch.float32}


def test_phase_2_goes_on_from_phase_1s_weights_and_moments_and_counts_anew(trainer, tmp_path, monkeypatch):
    common = [*SMALL, "--generated-data", "--optimiser=lamb-graphcore-pytorch"]
    assert trainer(*words(tmp_path / "run", *common, "--steps-this-run=2")).status == 0
    forget()
    loaded = []
    monkeypatch.setattr(
        programs.IpuPrograms,
        "_restore_moments",
        lambda self: loaded.append((self._moments, self.optimiser_step.applied)),
    )
    sizes = ["--max-seq-length=96", "--max-predictions-per-seq=12", "--phase2", "--steps-this-run=1"]
    assert trainer(*words(tmp_path / "run", *common, *sizes)).status == 0
    saved = load(tensors(tmp_path / "run", 2)[MOMENTS])
    ((moments, applied),) = loaded
    assert applied == 0
    assert moments.keys() == saved.keys()
    assert all(torch.equal(moments[name], saved[name]) for name in saved)


BOTH = (  # phases
    *(*SMALL, "--optimiser=lamb-graphcore-pytorch", "--warmup=0", "--unverified"),
    *("--max-seq-length", "64", "96", "--max-predictions-per-seq", "10", "15", "--steps", "2", "1"),
)


def test_both_phases_in_one_command_are_what_two_make(
    trainer, tmp_path, monkeypatch, training_set, longer_set
):
    monkeypatch.setenv("BERTDATA_STAND_IN_RECORD", str(tmp_path / "record"))
    both = [
        f"--{kind}-data-phase{n}={path}"
        for kind in ("train", "eval")
        for n, path in ((1, training_set), (2, longer_set))
    ]
    outcome = trainer(*words(tmp_path / "one", *BOTH, *both, "--eval-examples=5", "--eval-every=0"))
    assert outcome.status == 0, outcome.err
    calls = (tmp_path / "record.0").read_text("utf-8").splitlines()
    assert [line for line in calls if "destroy" in line] == ["training.destroy()", "inference.destroy()"]
    after = "\n".join(calls[calls.index("inference.destroy()") :])
    assert "training.compile(int32[4, 96]" in after
    first = [both[0], "--max-seq-length=64", "--max-predictions-per-seq=10", "--steps=2"]
    for phase in (first, [both[1], "--phase2"]):
        forget()
        assert trainer(*words(tmp_path / "two", *BOTH, *phase)).status == 0
    assert losses(tmp_path / "one") == losses(tmp_path / "two")
    assert tensors(tmp_path / "one", 3) == tensors(tmp_path / "two", 3)


def test_phase_2_needs_the_ipus_that_phase_1_held(tmp_path, monkeypatch):
    monkeypatch.setattr(programs.IpuPrograms, "release", lambda self: None)
    with pytest.raises(RuntimeError, match="no IPUs left: the training model holds them"):
        main(words(tmp_path / "run", *BOTH, "--generated-data"))


def test_both_phases_devices_are_one_process_of_poprun(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTDATA_STAND_IN_RECORD", str(tmp_path / "record"))
    monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", "2")
    monkeypatch.setenv("POPDIST_NUM_LOCAL_REPLICAS", "2")
    devices = [find_device(make_config([*SMALL, "--device=ipu"])) for _ in range(2)]
    assert [device.replicas for device in devices] == [2, 2]
    assert (tmp_path / "record.0").read_text("utf-8").count("popdist.init()") == 1


def test_sigterm_stops_after_the_update_that_the_ipus_are_making(trainer, tmp_path, monkeypatch):
    update = Training.update

    def interrupted(self: Training, updates: Any) -> Any:
        if self.state.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(self, updates)

    monkeypatch.setattr(Training, "update", interrupted)
    outcome = trainer(*words(tmp_path / "run", *SMALL, "--generated-data"))
    assert outcome.status == 0, outcome.err
    assert "stopped after update 3 as requested" in outcome.err
    assert list(find_checkpoints(str(tmp_path / "run"))) == [3]


def test_moments_that_poptorch_has_no_place_for_are_refused(trainer, tmp_path, monkeypatch):
    common = [*SMALL, "--generated-data", "--steps-this-run=1"]
    assert trainer(*words(tmp_path / "run", *common)).status == 0
    forget()
    plain = programs.IpuPrograms.load_moments

    def with_another(self: Any, moments: dict[str, torch.Tensor], applied: int) -> None:
        plain(self, {**moments, "momentum_buffer/cls.predictions.bias": torch.zeros(2000)}, applied)

    monkeypatch.setattr(programs.IpuPrograms, "load_moments", with_another)
    outcome = trainer(*words(tmp_path / "run", *common, "--resume"))
    refuse(outcome, 1, "PopTorch's LAMB differ in momentum_buffer/cls.predictions.bias")


def test_several_updates_are_made_in_one_call(trainer, tmp_path, monkeypatch):
    constant = ["--lr-schedule=custom", '--lr-schedule-by-step={"0": 0.01}', "--generated-data"]
    for steps in (1, 2):
        monkeypatch.setenv("BERTDATA_STAND_IN_RECORD", str(tmp_path / f"record-{steps}"))
        words_of = words(tmp_path / f"run-{steps}", *SMALL, *constant, "--steps-this-run=4")
        assert trainer(*words_of, f"--batches-per-step={steps}", "--replicas=2").status == 0
        forget()
    assert losses(tmp_path / "run-2") == losses(tmp_path / "run-1")
    calls = [
        (tmp_path / f"record-{steps}.0").read_text("utf-8").count("training.__call__") for steps in (1, 2)
    ]
    assert calls == [4, 2]
    outcome = trainer(
        *words(tmp_path / "odd", *SMALL, *constant, "--steps-this-run=3", "--batches-per-step=2")
    )
    refuse(outcome, 2, "3 updates to make, expected a multiple of the 2 that the device makes at a time")
    phases = words(tmp_path / "phases", *SMALL, *constant, "--warmup=0", "--steps", "2", "3")
    refuse(trainer(*phases, "--batches-per-step=2"), 2, "3 updates to make, expected a multiple of the 2")
    assert not (tmp_path / "phases").exists()  # the error comes before phase 1 is trained


COMPILED = ("--compile-only", "--generated-data", "--hidden-layers-per-stage=1", "--accumulation=7")


def compiled(trainer: Trainer, monkeypatch: pytest.MonkeyPatch, place: Path, *more: str) -> tuple[Any, str]:
    """The outcome of a run with --compile-only, and its calls."""
    forget()
    record = place / "record"
    Path(f"{record}.0").unlink(missing_ok=True)
    monkeypatch.setenv("BERTDATA_STAND_IN_RECORD", str(record))
    cache = f"--executable-cache-dir={place / 'cache'}"
    outcome = trainer(*words(place / "run", *SMALL, cache, *COMPILED, *more))
    return outcome, Path(f"{record}.0").read_text("utf-8") if Path(f"{record}.0").exists() else ""


def test_keys_of_all_devices_that_an_ipu_has_no_use_for_are_named(trainer, monkeypatch, tmp_path):
    outcome, _ = compiled(trainer, monkeypatch, tmp_path, "--compile", "--deterministic")
    (line,) = (line for line in outcome.err.splitlines() if "without effect on device ipu" in line)
    assert line.endswith("compile, deterministic")


def test_compiling_ahead_needs_no_ipu_and_leaves_an_executable(trainer, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTDATA_STAND_IN_IPUS", "0")
    outcome, calls = compiled(trainer, monkeypatch, tmp_path)
    assert outcome.status == 0, outcome.err
    assert "compiled for ipu: PopTorch 3.4.0, 1 replicas of 2 IPUs, stages on IPUs 0, 1, 0" in outcome.err
    assert "Options.useOfflineIpuTarget(ipu_version=2)" in calls
    assert "training.compile(int32[14, 64]" in calls
    assert "__call__" not in calls
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["training.popef"]
    assert not (tmp_path / "run").exists()


MAPPED = {
    "available_memory_proportion": ("[0.2, 0.3]", 'setAvailableMemoryProportion({"IPU0": 0.2, "IPU1": 0.3})'),
    "batches_per_step": ("3", "Options.deviceIterations(3)"),
    "disable_graph_outlining": ("true", '_Popart.set("enableOutlining", False)'),
    "device_mapping": ("[1, 0, 1]", 'BeginBlock(Layer, user_id="Stage1", ipu_id=0)'),
    "embeddings_placement": ("same_ipu", 'BeginBlock(Layer, user_id="Stage2", ipu_id=2)'),
    "enable_recomputation": ("true", '_Popart.set("autoRecomputation", 3)'),
    "executable_cache_dir": ("cache", 'Options.enableExecutableCaching("cache")'),
    "fp_exceptions": ("true", "Precision.enableFloatingPointExceptions(True)"),
    "hidden_layers_per_stage": ("[2]", "Stage1 on IPU 0: model.bert.pooler.dense"),
    "loss_scaling_by_step": ('{"0": 8.0}', "loss_scaling=8.0"),
    "matmul_serialize_factor": ("8", ", MatMulSerializationMode.OutputChannels, 8)"),
    "min_remote_tensor_size": ("130", "TensorLocationSettings().minElementsForOffChip(33)"),
    "no_outlining": ("true", '_Popart.set("enableOutlining", False)'),
    "partials_type": ("half", "Precision.setPartialsType(torch.float16)"),
    "pipeline_schedule": ("Sequential", "ShardedExecution(AutoStage.AutoIncrement)"),
    "pipeline_stages": (
        '[["emb", "hid", "hid", "enc_out", "pool", "heads"]]',
        "Stage0 on IPU 0: model.bert.embeddings.word_embeddings ... model.cls.seq_relationship",
    ),
    "reduction_type": ("sum", "accumulationAndReplicationReductionType(ReductionType.Sum)"),
    "replicated_tensor_sharding": ("true", "TensorLocationSettings().useReplicatedTensorSharding(True)"),
    "stochastic_rounding": ("false", "Precision.enableStochasticRounding(False)"),
    "synthetic_data": ("true", "Options.enableSyntheticData(True)"),
    "variable_offloading": ("true", "TensorLocationSettings().useOnChipStorage(False)"),
}


@pytest.mark.parametrize("key", MAPPED)
def test_each_of_graphcores_keys_reaches_poptorch(trainer, tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    value, call = MAPPED[key]
    scale = ["--precision=fp16", "--loss-scaling=4"]
    outcome, calls = compiled(trainer, monkeypatch, tmp_path, *scale, f"--{key}={value}")
    assert outcome.status == 0, outcome.err
    assert call in calls


def test_each_layer_is_kept_for_what_is_computed_again(trainer, tmp_path, monkeypatch):
    for more, count in {"--enable-recomputation": SHAPE.num_hidden_layers, "--nologs": 0}.items():
        _, calls = compiled(trainer, monkeypatch, tmp_path, more)
        assert calls.count("  recomputationCheckpoint(") == count


def test_the_table_of_keys_is_complete():
    known = get_device_key_schemas()
    assert set(MAPPED) == {name for name, item in known.items() if "ipu" in item["devices"]}


def test_the_loss_scale_changes_with_the_updates(trainer, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTDATA_STAND_IN_RECORD", str(tmp_path / "record"))
    scales = ["--precision=fp16", "--loss-scaling=4", '--loss-scaling-by-step={"1": 8, "2": 16}']
    words_of = words(tmp_path / "run", *SMALL, "--generated-data", "--steps-this-run=3", *scales)
    assert trainer(*words_of).status == 0
    calls = (tmp_path / "record.0").read_text("utf-8")
    assert re.findall(r"setOptimizer\(.* loss_scaling=(.*)\)", calls) == ["4.0", "8.0", "16.0"]


def test_synthetic_data_reports_no_losses(trainer, tmp_path):
    words_of = words(tmp_path / "run", *SMALL, "--generated-data", "--synthetic-data", "--steps-this-run=1")
    assert trainer(*words_of).status == 0
    assert losses(tmp_path / "run")[0]["mlm_loss"] == 0


@pytest.mark.parametrize("name", [name for name in find_shipped_configs() if name.startswith("graphcore")])
@pytest.mark.thorough_after_first
def test_graphcores_configurations_are_compiled_unchanged_but_for_their_size(
    trainer, tmp_path, monkeypatch, name
):
    size = ["--hidden-size=32", "--num-attention-heads=2", "--vocab-size=2000", "--batch-size=1"]
    forget()
    words_of = words(tmp_path / "run", f"--config={name}", *size, "--generated-data", "--compile-only")
    outcome = trainer(*words_of, "--accumulation=10", f"--executable-cache-dir={tmp_path}")
    assert outcome.status == 0, outcome.err
    assert "without effect" not in outcome.err


@pytest.mark.parametrize(
    ("keys", "layers", "begins", "on"),
    [
        ({}, 2, ["", "heads"], [0, 0]),
        ({"hidden_layers_per_stage": 4}, 12, ["", 4, 8, "heads"], [0, 1, 2, 0]),
        ({"hidden_layers_per_stage": 7}, 24, ["", 3, 10, 17, "heads"], [0, 1, 2, 3, 0]),
        ({"hidden_layers_per_stage": [1, 2]}, 3, ["", 1, "heads"], [0, 1, 0]),
        (
            {"hidden_layers_per_stage": 4, "embeddings_placement": "same_ipu"},
            *(12, ["", 0, 4, 8, "heads"], [0, 1, 2, 3, 0]),
        ),
        (
            {"hidden_layers_per_stage": 2, "embeddings_placement": "two_ipus"},
            *(2, ["", "types", 0, "heads"], [0, 1, 2, 0]),
        ),
        ({"hidden_layers_per_stage": 1, "device_mapping": [0, 1, 1]}, 2, ["", 1, "heads"], [0, 1, 1]),
        (
            {"pipeline_stages": [["emb", "hid"], ["hid", "hid"], ["enc_out", "pool", "heads"]]},
            *(3, ["", 1, "heads"], [0, 1, 0]),
        ),
    ],
)
def test_stages_are_those_of_graphcores_keys(keys, layers, begins, on):
    names = {"heads": "bert.pooler.dense", "types": "bert.embeddings.token_type_embeddings", "": ""}
    pipeline = stages.plan_pipeline(IpuSection(**keys), layers)
    assert pipeline.first_modules == tuple(
        names.get(begin, f"bert.encoder.layer.{begin}") for begin in begins
    )
    assert pipeline.ipus == tuple(on)


def test_ipus_are_a_power_of_two_and_micro_batches_fill_the_pipeline():
    plan = stages.plan_pipeline
    assert [
        plan(IpuSection(hidden_layers_per_stage=1), count).ipus_per_replica for count in (1, 2, 3, 4, 5)
    ] == [
        1,
        2,
        4,
        4,
        8,
    ]
    least = [plan(IpuSection(hidden_layers_per_stage=1), count).least_accumulation for count in (1, 2, 4)]
    assert least == [1, 5, 9]  # adjacent stages on one IPU count as one


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"hidden_layers_per_stage": [1, 2]},
            "hidden_layers_per_stage is [1, 2], which does not make up 4 layers",
        ),
        ({"hidden_layers_per_stage": 5}, "hidden_layers_per_stage is 5, which does not make up 4 layers"),
        ({"hidden_layers_per_stage": 3, "embeddings_placement": "same_ipu"}, "does not make up 4 layers"),
        ({"embeddings_placement": "anywhere"}, "expected one of same_as_hidden_layers, same_ipu, two_ipus"),
        (
            {"device_mapping": [0]},
            "device_mapping is [0], expected the IPU, counted from 0, of each of 2 stages",
        ),
        ({"device_mapping": [0, 2]}, "device_mapping is [0, 2]"),
        ({"pipeline_stages": [["emb", "hid"], ["heads"]]}, "expected lists of, in order, emb, 4 times hid"),
        ({"pipeline_stages": [["hid"] * 4, ["emb", "enc_out", "pool", "heads"]]}, "in order, emb"),
    ],
)
def test_layers_that_do_not_divide_as_asked_are_refused(keys, said):
    with pytest.raises(SettingsError) as caught:
        stages.plan_pipeline(IpuSection(**keys), 4)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--precision=bf16"], "precision bf16: IPUs have fp16; give --precision fp16"),
        (["--bins=4"], "device 'ipu': bins make rows of several widths, its programs take one"),
        (["--precision=fp16", "--loss-scaling=0"], r"loss_scaling 0 \(adaptive\): .* give a fixed one"),
        (["--optimiser=lamb-nvidia"], "PopTorch's LAMB has no clipping; give --clipping none"),
        (["--optimiser=lamb-mlperf"], "clipping per_micro_batch: .* give --clipping none"),
        (
            ["--optimiser=adamw", "--clipping=per_update", "--precision=fp16", "--loss-scaling=8"],
            "gradients before it divides them by the loss scale; give --clipping none or --loss-scaling 1",
        ),
        (
            ["--optimiser=momentum", "--precision=fp16", "--loss-scaling=8"],
            "momentum: .* give --loss-scaling 1",
        ),
        (["--force-weight-sync"], "force_weight_sync"),
        (["--allreduce-post-accumulation-fp16"], "allreduce_post_accumulation_fp16"),
        (["--synthetic-data", "--no-generated-data"], "synthetic_data: .* add --generated-data"),
        (["--compile-only"], "compile_only: .* give --executable-cache-dir"),
        (
            ["--pipeline-schedule=Interleaved"],
            "pipeline_schedule is 'Interleaved', expected one of Grouped, Seq",
        ),
        (["--partials-type=double"], "partials_type is 'double', expected one of half, float"),
        (["--reduction-type=none"], "reduction_type is 'none', expected one of mean, sum"),
        (
            ["--available-memory-proportion=[0.1, 0.2]"],
            r"\[0.1, 0.2\], expected a number, or one for each of 1",
        ),
        (
            ["--matmul-serialize-factor=7"],
            "matmul_serialize_factor is 7, expected a divisor of the 2000 rows",
        ),
        (["--hidden-layers-per-stage=1"], "accumulation .* is 2, expected 5 or more to fill a pipeline"),
        (["--hidden-layers-per-stage=3"], "hidden_layers_per_stage is 3, which does not make up 2 layers"),
    ],
)
def test_what_poptorch_has_not_is_refused_with_the_remedy(trainer, tmp_path, training_set, more, said):
    data = ["--generated-data", f"--train-data={training_set}", "--unverified"]
    outcome = trainer(*words(tmp_path / "run", *SMALL, *data, *more))
    refuse(outcome, 2)
    assert re.search(said, outcome.err), outcome.err
    assert not (tmp_path / "run").exists()  # the corrected command may use it


def test_a_modernbert_is_refused_in_one_line(trainer, tmp_path, block_set):
    outcome = trainer(
        *words(
            tmp_path / "run",
            *SMALL,
            f"--train-data={block_set}",
            "--model-type=modernbert",
            "--type-vocab-size=1",
        )
    )
    refuse(outcome, 2, "device 'ipu': model_type modernbert: its stages are those of a bert or a roberta")


def test_a_machine_without_poptorch_is_refused_in_one_line(trainer, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(STAND_INS)])
    outcome = trainer(*words(tmp_path / "run", *SMALL, "--generated-data"))
    refuse(outcome, 2, "device 'ipu' is not there: no PopTorch", "source the Poplar SDK's enable scripts")
    finding = ipu.examine()
    assert (finding.name, finding.there) == ("ipu", False)
    assert "PopTorch wheel" in finding.missing


def test_a_machine_without_ipus_is_refused_in_one_line(trainer, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTDATA_STAND_IN_IPUS", "0")
    outcome = trainer(*words(tmp_path / "run", *SMALL, "--generated-data"))
    refuse(outcome, 2, "device 'ipu' is not there: PopTorch finds no IPU; see gc-info")
    assert not ipu.examine().there


def test_what_is_there_is_told():
    finding = ipu.examine()
    assert finding.there
    assert finding.found == "at least 16 IPUs of generation 2; PopTorch 3.4.0; fp16"


def test_workers_that_poptorch_knows_nothing_of_are_refused():
    config = make_config([*SMALL, "--device=ipu"])
    device = find_device(config)
    workers = Collective(device)
    workers.size = 2
    model, task = (
        device.place(BertForPreTraining(SHAPE)),
        find_task("pretraining", Config.of(), device.row_losses),
    )
    with pytest.raises(SettingsError, match="2 processes that poprun did not start; .* start by poprun"):
        find_strategy(
            Worker(
                config=config,
                device=device,
                collective=workers,
                model_share=hold_whole_model(workers),
                task=task,
                model=model,
            )
        )


def test_evaluation_needs_the_ipus_that_training_holds(trainer, tmp_path, monkeypatch, training_set):
    monkeypatch.setattr(programs.IpuPrograms, "_detach_training", lambda self: nullcontext())
    data = ["--unverified", f"--train-data={training_set}", f"--eval-data={training_set}"]
    with pytest.raises(RuntimeError, match="no IPUs left: the training model holds them"):
        main(words(tmp_path / "run", *SMALL, *data, "--steps-this-run=1"))


def test_a_checkpoint_is_evaluated_without_training(trainer, tmp_path, training_set):
    data = ["--unverified", f"--train-data={training_set}", f"--eval-data={training_set}"]
    words_of = words(tmp_path / "run", *SMALL, *data, "--steps-this-run=1", "--eval-examples=20")
    assert trainer(*words_of).status == 0
    before = results(tmp_path / "run")
    forget()
    outcome = trainer("evaluate", *words_of[1:])
    assert outcome.status == 0, outcome.err
    assert results(tmp_path / "run") == before


def test_poprun_is_recognised(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "HOROVOD_RANK", "HOROVOD_LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1")
    assert find_launcher() == "torch_distributed"  # mpirun's
    monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", "8")
    assert find_launcher() == "poprun"
    assert (find_rank(), find_local_rank()) == ((3, 4), 1)


def poprun(place: Path, *arguments: object, instances: int = 2, replicas: int = 4, **more: str) -> list[Any]:
    """The outcomes of the processes that poprun would start, with Open MPI's and poprun's variables."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {
        **os.environ,
        **{"PYTHONPATH": f"{ROOT}:{STAND_INS}", "OMP_NUM_THREADS": "1", "MASTER_PORT": str(port)},
        "BERTDATA_STAND_IN_RECORD": str(place / "record"),
        "OMPI_COMM_WORLD_SIZE": str(instances),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(instances),
        "POPDIST_NUM_TOTAL_REPLICAS": str(replicas),
        "POPDIST_NUM_LOCAL_REPLICAS": str(replicas // instances),
        **more,
    }
    processes = [
        subprocess.Popen(
            [forking_python(), "-m", "trainer", *map(str, arguments)],
            env={**common, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(instances)
    ]
    try:
        return [Outcome(process.wait(120), *process.communicate()) for process in processes]
    finally:
        for process in processes:
            process.kill()


@pytest.mark.thorough
def test_processes_of_poprun_share_their_replicas_work(trainer, tmp_path):
    common = [
        *SMALL,
        "--generated-data",
        "--steps-this-run=3",
        "--replicas=4",
        "--optimiser=lamb-graphcore-pytorch",
    ]
    assert trainer(*words(tmp_path / "one", *common)).status == 0
    outcomes = poprun(tmp_path, *words(tmp_path / "two", *common))
    assert [outcome.status for outcome in outcomes] == [0, 0], outcomes[0].err
    assert "each of 4 workers x 2 micro-batches x 2 = 16 examples" in outcomes[0].err
    for row, wanted in zip(losses(tmp_path / "two"), losses(tmp_path / "one"), strict=True):
        assert row == pytest.approx(wanted, abs=1e-5)
    for rank in (0, 1):
        calls = (tmp_path / f"record.{rank}").read_text("utf-8")
        assert calls.startswith("popdist.init()\n")
        assert "popdist.poptorch.Options(ipus_per_replica=1)" in calls
        assert "replicationFactor" not in calls
        assert "training.__call__(int32[8, 64]" in calls


@pytest.mark.thorough
def test_poprun_must_be_told_the_ipus_of_a_replica(tmp_path):
    pipeline = [*SMALL, "--generated-data", "--hidden-layers-per-stage=1", "--accumulation=5"]
    outcomes = poprun(tmp_path, *words(tmp_path / "run", *pipeline), instances=1, replicas=1)
    refuse(outcomes[0], 2, "poprun was told 1 IPUs a replica; give poprun --ipus-per-replica 2")


@pytest.mark.thorough
def test_poprun_on_several_hosts_needs_to_know_the_first(tmp_path):
    words_of = words(tmp_path / "run", *SMALL, "--generated-data")
    outcomes = poprun(tmp_path, *words_of, instances=1, replicas=1, OMPI_COMM_WORLD_SIZE="2")
    refuse(outcomes[0], 2, "MASTER_ADDR is not set: give rank 0's machine")


def test_the_stand_in_has_nothing_that_poptorch_has_not():
    import poptorch
    from poptorch.blocks import BeginBlock

    made = poptorch.Options()
    for wrong in (
        lambda: poptorch.Option(),
        lambda: made.gradientAccumulation(2),
        lambda: made.Training.gradientAccumulation(count=2),
        lambda: made._Popart.set("enableOutlinig", False),
        lambda: made.outputMode("All"),
        lambda: made.Precision.setPartialsType(torch.bfloat16),
        lambda: poptorch.optim.LAMB([], lr=1.0, max_grad_norm=1.0),
        lambda: poptorch.optim.LAMB([{"params": [torch.ones(1)], "trust": True}]),
        lambda: BeginBlock(BeginBlock(torch.nn.Linear(1, 1), "A", 0), "B", 0),
        lambda: poptorch.trainingModel(torch.nn.Linear(1, 1), made, torch.optim.SGD([torch.ones(1)], 0.1)),
        lambda: poptorch.inferenceModel(torch.nn.Linear(1, 1)).copyWeightsToHost(),
    ):
        with pytest.raises((AttributeError, TypeError, ValueError, RuntimeError, AssertionError)):
            wrong()
    poptorch.inferenceModel(torch.nn.Linear(1, 1), made)
    with pytest.raises(AttributeError, match="Can't modify frozen Options"):
        made.deviceIterations(2)
