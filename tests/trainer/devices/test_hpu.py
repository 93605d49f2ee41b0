"""Gaudi's adapter against a stand-in of habana_frameworks: calls, their order and their results.

The golden files are written by hand after the vendor's documentation. All scenarios of one worker run in one
process (hpu_worker.py), each forked from it; those of eight under torchrun.
"""

import json
import re
import socket
import subprocess
from dataclasses import MISSING, dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from tests.support.device_records import compare
from tests.support.fork_server import forking_python
from tests.support.launching import ROOT, launch
from tests.support.training_runs import losses, tensors
from trainer.config.model import ModelConfig
from trainer.config.sections.devices import HpuSection
from trainer.data.row_batches import RowBatch
from trainer.devices.hpu import Hpu, find_execution_mode
from trainer.model.headed import BertForPreTraining

WORKER = ROOT / "tests" / "support" / "hpu_worker.py"
MODEL = ("--hidden-size=16", "--num-hidden-layers=1", "--num-attention-heads=2", "--intermediate-size=32")
STILL = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")
RUN = ("--batch-size=2", "--accumulation=2", "--steps=4", "--warmup=1", "--log-every=1", "--no-progress-bar")
BOTH = (  # phases
    *("--generated-data", "--vocab-size=100", "--warmup=0", "--steps", "2", "1"),
    *("--max-seq-length", "16", "32", "--max-predictions-per-seq", "2", "4"),
)
FIRST = ("--steps=2", "--max-seq-length=16", "--max-predictions-per-seq=2")
GOLDEN = {"lazy": "hpu_lazy_1", "graph": "hpu_graph_1", "eager": "hpu_eager_1"}
MISTAKES = {
    "lazy": [
        "no mark_step after backward",
        "no mark_step after the step",
        "mark_step before the step",
        "variable not set",
    ],
    "graph": ["variable not set", "not compiled", "batch left on the host", "shapes that vary"],
    "eager": [
        "no autocast",
        "no FusedLamb",
        "FusedLamb does not clip",
        "blocking copies without position ids",
        "generator not seeded",
    ],
}
OPTIMISERS = ("lamb-nvidia", "lamb-mlperf", "lamb-nvlamb", "adamw-bert", "adamw", "sgd")
REFUSALS = {
    "fp16": (["--precision=fp16"], {}, "precision is fp16, expected bf16 or fp32: --precision bf16"),
    "fp8": (["--precision=fp8"], {}, "precision fp8: device 'hpu' has no FP8 here; give another --precision"),
    "both modes": (["--mode=graph", "--use-lazy-mode"], {}, "mode graph and use_lazy_mode true contradict"),
    "not lazy": (["--mode=lazy", "--no-use-lazy-mode"], {}, "mode lazy and use_lazy_mode false contradict"),
    "no such mode": (["--mode=fast"], {}, "mode is 'fast', expected one of lazy, graph, eager"),
    "compiled lazily": (["--mode=lazy", "--compile"], {}, "mode lazy and compile contradict each other"),
    "lazy environment": ([], {"PT_HPU_LAZY_MODE": "1"}, "PT_HPU_LAZY_MODE is 1, mode graph needs 0"),
    "eager environment": (
        ["--mode=lazy"],
        {"PT_HPU_LAZY_MODE": "0"},
        "is 0, mode lazy needs 1",
    ),
    "imported before": ([], {}, "already imported with PT_HPU_LAZY_MODE=1, mode graph needs 0; start with"),
    "no package": ([], {}, "is not there: habana_frameworks cannot be imported (No module named"),
    "no card": ([], {"BERTDATA_STAND_IN_CARDS": "0"}, "is not there: worker 0 has no card"),
    "too few cards": ([], {"BERTDATA_STAND_IN_CARDS": "1", "LOCAL_RANK": "1"}, "worker 1 has no card"),
    "horovodrun": ([], {"HOROVOD_RANK": "0", "HOROVOD_SIZE": "1"}, "start the workers with torchrun"),
}
EXAMINED = {
    "cards": {},
    "cards, lazily": {"environment": {"PT_HPU_LAZY_MODE": "1", "BERTDATA_STAND_IN_LACKS": "FusedAdamW"}},
    "no cards": {"environment": {"BERTDATA_STAND_IN_CARDS": "0"}},
    "no bridge": {"stand_in": False},
}


@dataclass(frozen=True)
class Scenes:
    """The directories of the scenarios' runs, and their results."""

    place: Path

    def run(self, name: str) -> Path:
        """The run's output directory; AssertionError with its output if it failed."""
        assert self.status(name) == 0, self.said(name)
        return self.place / name

    def status(self, name: str) -> int:
        return int((self.place / f"{name}.status").read_text())

    def said(self, name: str) -> str:
        return (self.place / f"{name}.err").read_text()

    def record(self, name: str) -> str:
        return (self.place / f"{name}.record.0").read_text()

    def compare(self, golden: str, name: str, rank: int = 0) -> None:
        """AssertionError with the difference between the golden file and the record, compressed."""
        path = self.place / f"{name}.{rank}.txt"
        path.write_text(compressed((self.place / f"{name}.record.{rank}").read_text()))
        compare(golden, path)


def scenario(place: Path, name: str, *runs: list[str], **more: object) -> dict[str, object]:
    found = {"name": name, "runs": runs, "environment": {}, "stand_in": True, "mutation": "", "check": ""}
    environment = {**more.pop("environment", {}), "BERTDATA_STAND_IN_RECORD": f"{place}/{name}.record"}
    return {**found, **more, "environment": environment}


def words(dataset: Path, place: Path, name: str, *more: str) -> list[str]:
    data = (f"--train-data={dataset}", f"--output-dir={place}/{name}")
    return ["pretrain", "--device=hpu", *MODEL, *STILL, *RUN, *data, *more]


def short_run(dataset: Path, place: Path, name: str, *more: str) -> list[list[str]]:
    """Two updates, evaluation and checkpoint, then one more after a second start."""
    evaluation = (f"--eval-data={dataset}", "--eval-examples=3")
    more = ("--precision=bf16", *evaluation, *more)
    return [
        words(dataset, place, name, *more, "--steps-this-run=2"),
        words(dataset, place, name, *more, "--steps-this-run=1", "--resume"),
    ]


def calls(dataset: Path, place: Path) -> list[dict[str, object]]:
    """Correct short runs, refusals, and checks without a run."""

    def one(name: str, *more: str, **settings: object) -> dict[str, object]:
        return scenario(place, name, words(dataset, place, name, *more), **settings)

    found = [scenario(place, mode, *short_run(dataset, place, mode, f"--mode={mode}")) for mode in GOLDEN]
    found.append(scenario(place, "older name", *short_run(dataset, place, "older name", "--use-lazy-mode")))
    for name, (flags, environment, _) in REFUSALS.items():
        settings = {"stand_in": name != "no package"}
        settings["mutation"] = "bridge imported before" if name == "imported before" else ""
        found.append(one(name, *flags, environment=environment, **settings))
    found.append(one("compiled eagerly", "--mode=eager", "--compile", "--steps-this-run=1"))
    found.append(one("compile only", "--compile-only"))
    found.append(one("auto", "--device=auto", "--mode=lazy", "--steps-this-run=1"))
    for mode in ("lazy", "graph"):
        found.append(one(f"both phases, {mode}", *BOTH, f"--mode={mode}"))
        first = words(dataset, place, f"each phase, {mode}", *BOTH, *FIRST, f"--mode={mode}")
        then = words(dataset, place, f"each phase, {mode}", *BOTH, "--phase2", f"--mode={mode}")
        found.append(scenario(place, f"each phase, {mode}", first, then))
    for name, settings in EXAMINED.items():
        found.append(scenario(place, name, check="examination", **settings))
    return [*found, *(scenario(place, name, check=name) for name in ("unknown calls", "tied weights"))]


def mistakes(dataset: Path, place: Path) -> list[dict[str, object]]:
    """Short runs of an adapter that makes one mistake each."""
    found = []
    for mode, names in MISTAKES.items():
        for mistake in names:
            name = f"{mode}, {mistake}"
            runs = short_run(dataset, place, name, f"--mode={mode}", "--no-logs")
            found.append(scenario(place, name, *runs, mutation=mistake))
        runs = short_run(dataset, place, f"{mode}, none", f"--mode={mode}", "--no-logs")
        found.append(scenario(place, f"{mode}, none", *runs))
    return found


def trainings(dataset: Path, place: Path) -> list[dict[str, object]]:
    """Longer runs, to compare their results."""

    def one(name: str, *more: str, **settings: object) -> dict[str, object]:
        return scenario(place, name, words(dataset, place, name, *more), **settings)

    found = []
    for name in OPTIMISERS:
        found.append(one(f"cpu {name}", "--device=cpu", f"--optimiser={name}"))
        found.append(one(f"hpu {name}", "--mode=eager", f"--optimiser={name}"))
    found.append(one("own lamb", "--use-fused-lamb=false"))
    lacks = {"BERTDATA_STAND_IN_LACKS": "FusedLamb,FusedAdamW,FusedClipNorm"}
    for name in ("lamb-mlperf", "adamw"):
        found.append(one(f"bare {name}", f"--optimiser={name}", environment=lacks))
    for optimiser in ("lamb-nvidia", "adamw"):
        whole, broken = f"whole {optimiser}", f"broken {optimiser}"
        found.append(one(whole, f"--optimiser={optimiser}"))
        start = words(dataset, place, broken, f"--optimiser={optimiser}")
        found.append(scenario(place, broken, [*start, "--steps-this-run=2"], [*start, "--resume"]))
    on_host = ["--device=cpu", "--optimiser=lamb-nvidia"]
    first = words(dataset, place, "to the card", *on_host, "--steps-this-run=2")
    found.append(scenario(place, "to the card", first, words(dataset, place, "to the card", "--resume")))
    first = words(dataset, place, "from the card", "--steps-this-run=2")
    then = words(dataset, place, "from the card", *on_host, "--resume")
    found.append(scenario(place, "from the card", first, then))
    return [*found, one("profile", "--mode=eager", "--profile", "--steps=9", "--accumulation=1")]


def start(place: Path, launcher: str, workers: int, work: list[dict[str, object]], seconds: float) -> None:
    (place / "scenarios.json").write_text(json.dumps(work))
    outcome = launch(launcher, workers, WORKER, place / "scenarios.json", seconds=seconds)
    assert outcome.status == 0, outcome.err


@pytest.fixture(scope="module", params=[calls])
def scenes(training_set: Path, tmp_path_factory: pytest.TempPathFactory, request) -> Scenes:
    """The directory of the scenarios that the test needs."""
    place = tmp_path_factory.mktemp("hpu")
    start(place, "alone", 1, request.param(training_set, place), 300)
    return Scenes(place)


thorough = pytest.mark.thorough


def of(work):
    """Mark a test that needs other scenarios than calls."""
    return pytest.mark.parametrize("scenes", [work], indirect=True, ids=[work.__name__])


def compressed(record: str) -> str:
    """The record with one line for tensors that are moved together, and without random values."""
    found = []
    for kind, lines in groupby(record.splitlines(), _kind):
        lines = list(lines)
        values = [line.partition(" of ")[2] for line in lines]
        if kind == "Tensor.cpu()" and len(values) > 1:
            lines = [f"{kind} of {len(values)} tensors"]
        elif kind.startswith("Tensor.to("):
            counts = [(value, len(list(same))) for value, same in groupby(values)]
            lines = [f"{kind} of " + ", ".join(value if n == 1 else f"{n} {value}" for value, n in counts)]
        elif "int32 table" in kind:
            lines = [kind]
        found += lines
    return "\n".join(found)


def _kind(line: str) -> str:
    if re.search(
        r"int32\[8, \d+\]", line
    ):  # the table in which eight workers exchange texts; as wide as the longest text
        return "dist.all_reduce(int32 table, async_op=True)"
    return line.partition(" of ")[0] if line.startswith(("Tensor.to(", "Tensor.cpu(")) else line


@pytest.mark.parametrize("mode", GOLDEN)
def test_the_calls_of_a_short_run_are_those_of_the_golden_file(scenes, mode):
    scenes.run(mode)
    scenes.compare(GOLDEN[mode], mode)


def test_device_auto_takes_the_card_in_the_configured_mode(scenes):
    assert scenes.status("auto") == 0, scenes.said("auto")
    first = scenes.said("auto").splitlines()[0]
    assert first.startswith("trainer: device auto: hpu (GAUDI2, habana_frameworks stand-in, ")
    assert first.endswith(", mode lazy)")


def test_habanas_older_name_of_lazy_mode_means_it(scenes):
    scenes.run("older name")
    scenes.compare("hpu_lazy_1", "older name")


@pytest.mark.parametrize("mode", ["lazy", "graph"])
def test_both_phases_in_one_command_are_what_two_make(scenes, mode):
    both, each = (scenes.run(f"{which} phase{'s' * (which == 'both')}, {mode}") for which in ("both", "each"))
    assert losses(both) == losses(each)
    assert tensors(both, 3) == tensors(each, 3)
    assert ("mark_step" in scenes.record(f"both phases, {mode}")) == (mode == "lazy")


@thorough
@of(mistakes)
@pytest.mark.parametrize(("mode", "mistake"), [(mode, name) for mode in MISTAKES for name in MISTAKES[mode]])
def test_a_mistake_in_the_adapter_is_seen(scenes, mode, mistake):
    scenes.compare(GOLDEN[mode], f"{mode}, none")  # so the difference comes from the mistake
    with pytest.raises(AssertionError, match="recorded"):
        scenes.compare(GOLDEN[mode], f"{mode}, {mistake}")
    refused = (mode, mistake) == ("lazy", "variable not set")  # every other run completes
    assert scenes.status(f"{mode}, {mistake}") == (2 if refused else 0), scenes.said(f"{mode}, {mistake}")


def same_losses(run: Path, other: Path) -> None:
    for mine, theirs in zip(losses(run), losses(other), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-5)


@thorough
@of(trainings)
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_losses_and_moments_are_those_of_the_processor(scenes, optimiser):
    found, expected = scenes.run(f"hpu {optimiser}"), scenes.run(f"cpu {optimiser}")
    same_losses(found, expected)
    last = Path("checkpoints") / "step-00000004" / "optimizer.safetensors"
    if optimiser == "sgd":
        return
    mine, other = load_file(found / last), load_file(expected / last)
    assert {name.partition("/")[0] for name in mine} == {"exp_avg", "exp_avg_sq"}
    assert set(mine) == set(other)
    share = 0.05 if optimiser == "adamw" else 1e-3  # where gradients are as small as epsilon
    for name, moment in mine.items():
        assert moment.sub(other[name]).norm() <= share * other[name].norm() + 1e-9, name


@thorough
@of(trainings)
def test_the_bridges_optimiser_is_used_where_it_computes_the_same(scenes):
    used = {"lamb-nvidia": "FusedLamb", "lamb-mlperf": "FusedLamb", "lamb-nvlamb": None, "sgd": None}
    used |= {"adamw-bert": "FusedAdamW", "adamw": "FusedAdamW"}
    for optimiser, name in used.items():
        record = scenes.record(f"hpu {optimiser}")
        steps = re.findall(r"(\w+)\.step\(\) number (\d)", record)
        assert steps == ([(name, str(number)) for number in (1, 2, 3, 4)] if name else [])
        clips = {"lamb-nvidia": 0, "sgd": 0, "adamw": 0, "lamb-nvlamb": 4}.get(optimiser, 8)
        assert record.count("FusedClipNorm.clip_norm(") == clips, optimiser
        assert record.count("FusedClipNorm(") == (clips > 0)  # the norm is brought to the card once
    assert "max_grad_norm=1.0, use_lamb=False" in scenes.record("hpu lamb-nvidia")
    assert "max_grad_norm=None, use_lamb=False" in scenes.record("hpu lamb-mlperf")


@thorough
@of(trainings)
def test_without_fused_lamb_the_bridge_still_clips(scenes):
    scenes.run("own lamb")
    assert "FusedLamb" not in scenes.record("own lamb")
    assert scenes.record("own lamb").count("FusedClipNorm.clip_norm(30 parameters)") == 4
    same_losses(scenes.run("own lamb"), scenes.run("whole lamb-nvidia"))


@thorough
@of(trainings)
@pytest.mark.parametrize("optimiser", ["lamb-mlperf", "adamw"])
def test_a_bridge_without_fused_parts_trains_with_ours(scenes, optimiser):
    found = scenes.run(f"bare {optimiser}")
    assert "Fused" not in scenes.record(f"bare {optimiser}")
    same_losses(found, scenes.run(f"cpu {optimiser}"))


@thorough
@of(trainings)
@pytest.mark.parametrize("optimiser", ["lamb-nvidia", "adamw"])
def test_a_resumed_run_goes_on_bit_for_bit(scenes, optimiser):
    whole, broken = scenes.run(f"whole {optimiser}"), scenes.run(f"broken {optimiser}")
    assert tensors(whole, 4) == tensors(broken, 4)
    assert losses(whole) == losses(broken)


@thorough
@of(trainings)
@pytest.mark.parametrize("name", ["to the card", "from the card"])
def test_a_run_may_go_on_with_and_without_a_card(scenes, name):
    same_losses(scenes.run(name), scenes.run("whole lamb-nvidia"))
    assert ("FusedLamb.step() number 3" in scenes.record(name)) == (name == "to the card")


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_is_refused_in_one_line(scenes, name):
    assert scenes.status(name) == 2, scenes.said(name)
    (line,) = [line for line in scenes.said(name).splitlines() if "error: " in line]
    assert REFUSALS[name][2] in line
    assert not (scenes.place / name).exists()


def test_the_stand_in_refuses_what_the_vendors_interface_has_not(scenes):
    assert scenes.status("unknown calls") == 0, scenes.said("unknown calls")
    lines = [line for line in scenes.said("unknown calls").splitlines() if line]
    named = ["gpu_migration", "mark_steps", "wait", "lazy mode only", "set_seed", "FusedLAMB", "momentum"]
    named += ["parameter group 1 is empty", "max_norm", "'habana'", "dynamo", "float32"]
    assert len(lines) == len(named)
    for line, word in zip(lines, named, strict=True):
        assert "Error: " in line
        assert word in line


def test_the_heads_weight_is_the_embeddings_on_the_card_too(scenes):
    assert scenes.status("tied weights") == 0, scenes.said("tied weights")
    plain, names, gradient = [line for line in scenes.said("tied weights").splitlines() if line]
    assert plain == "1 then 2"  # as on the card, Module.to unties two modules
    assert names == "['bert.embeddings.word_embeddings.weight']"
    assert gradient.endswith("True")


def test_eager_mode_compiles_where_that_is_asked_for(scenes):
    for name in ("compiled eagerly", "compile only"):
        assert scenes.status(name) == 0, scenes.said(name)
        record = scenes.record(name)
        assert 'torch.compile(Learner, backend="hpu_backend")' in record
        assert record.count("hpu_backend compiles Learner for training") == 1
    assert "nothing was trained" in scenes.said("compile only")
    assert "torch.compile" not in scenes.record("eager")


@thorough
@of(trainings)
def test_a_profile_records_the_card(scenes):
    assert json.loads((scenes.run("profile") / "profile.json").read_text())["traceEvents"]


def test_the_card_is_described(scenes):
    for mode, how in {"lazy": "mode lazy", "graph": "mode graph, compiled by hpu_backend"}.items():
        assert "weights; hpu: GAUDI2, habana_frameworks stand-in, torch" in scenes.said(mode)
        assert f"{how}\n" in scenes.said(mode)


def test_doctor_is_told_what_is_there_and_what_is_missing(scenes):
    said = {name: scenes.said(name).strip() for name in EXAMINED if scenes.status(name) == 0}
    version = f"habana_frameworks stand-in, torch {torch.__version__}"
    fused = "FusedLamb, FusedAdamW, FusedClipNorm"
    assert f"there=True, found='8 x Gaudi; {version}; mode graph; {fused}', missing=''" in said["cards"]
    assert "mode lazy; FusedLamb, FusedClipNorm'" in said["cards, lazily"]
    assert f"there=False, found='{version} finds no card', missing='hl-smi lists" in said["no cards"]
    assert "there=False, found='habana_frameworks is not installed', missing=" in said["no bridge"]
    assert "get_device_name" not in scenes.record("cards")  # which opens the card


def test_importing_the_adapter_sets_and_imports_nothing():
    code = (
        "import os, sys; assert 'trainer.devices.hpu' not in sys.modules; "
        "before = dict(os.environ); import trainer.devices.hpu; "
        "assert before == dict(os.environ); assert 'habana_frameworks' not in sys.modules"
    )
    subprocess.run([forking_python(), "-c", code], check=True, cwd=ROOT)


def test_modes():
    assert find_execution_mode(HpuSection()) == "graph"
    assert find_execution_mode(HpuSection(use_lazy_mode=True)) == "lazy"
    assert find_execution_mode(HpuSection(use_lazy_mode=False)) == "graph"
    assert find_execution_mode(HpuSection(use_lazy_mode=False, mode="eager")) == "eager"


def test_position_ids_for_all_examples_stay_when_a_batch_is_cut():
    rows = torch.arange(12).reshape(4, 3)
    batch = RowBatch(**dict.fromkeys(BATCH, rows), position_ids=torch.arange(3))
    assert batch.slice_rows(1, 3).position_ids.tolist() == [0, 1, 2]
    assert batch.slice_rows(1, 3).input_ids.tolist() == [[3, 4, 5], [6, 7, 8]]
    assert RowBatch(**dict.fromkeys(BATCH, rows), position_ids=rows).slice_rows(1, 3).position_ids.shape == (
        2,
        3,
    )
    assert RowBatch(**dict.fromkeys(BATCH, rows)).map(torch.neg).position_ids is None


def test_packed_rows_keep_their_position_ids():
    rows = torch.arange(12, dtype=torch.int32).reshape(4, 3)
    processor = SimpleNamespace(torch_device=torch.device("cpu"))
    alone = Hpu.move(processor, RowBatch(**dict.fromkeys(BATCH, rows)))
    assert alone.position_ids.tolist() == [0, 1, 2]
    packed = RowBatch(**dict.fromkeys(BATCH, rows), position_ids=rows, next_sentence_positions=rows)
    assert torch.equal(Hpu.move(processor, packed).position_ids, rows)


def test_position_ids_may_be_an_input():
    torch.manual_seed(1)
    model = BertForPreTraining(ModelConfig(vocab_size=64, hidden_size=16, num_attention_heads=2)).eval()
    ids, mask = torch.randint(5, 64, (2, 6), dtype=torch.int32), torch.ones(2, 6, dtype=torch.int32)
    mask[1, 4:] = 0
    slots = torch.tensor([[1, 2], [3, 0]], dtype=torch.int32)
    batch = RowBatch(
        input_ids=ids * mask,
        token_type_ids=torch.zeros_like(ids),
        attention_mask=mask,
        masked_lm_positions=slots,
        masked_lm_ids=slots + 5,
        masked_lm_weights=torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
        next_sentence_labels=torch.tensor([0, 1], dtype=torch.int32),
    )
    expected = model(batch)
    places = torch.arange(6, dtype=torch.int32)
    for given in (places, places.expand(2, 6)):
        found = model(replace(batch, position_ids=given))
        assert torch.equal(found.masked_lm, expected.masked_lm)
    other = model(replace(batch, position_ids=places.flip(0)))
    assert not torch.equal(other.masked_lm, expected.masked_lm)


@thorough
def test_habanas_configurations_run_unchanged(tmp_path):
    """Only the sizes of model, batch and run are reduced."""
    common = ["pretrain", *MODEL, "--generated-data", f"--output-dir={tmp_path}/run", "--steps-this-run=1"]
    first = [*common, "--config=habana_large_phase1", "--batch-size=2", "--global-batch-size=4"]
    second = [*common, "--config=habana_large_phase2", "--batch-size=1", "--global-batch-size=2"]
    work = [scenario(tmp_path, "presets", first, [*second, "--phase1-end-step=1"])]
    start(tmp_path, "alone", 1, work, 120)
    scenes = Scenes(tmp_path)
    assert scenes.status("presets") == 0, scenes.said("presets")
    assert sorted(path.name[-1] for path in (tmp_path / "run" / "checkpoints").iterdir()) == ["1", "2"]
    record = compressed(scenes.record("presets"))
    assert "compiles Learner for training, int32[2, 128]" in record
    assert "compiles Learner for training, int32[1, 512]" in record
    assert record.count("FusedLamb.step() number 1") == 2  # phase 2 counts from the beginning


@thorough
@pytest.mark.parametrize("mode", GOLDEN)
def test_eight_workers_make_the_calls_of_the_golden_file(training_set, tmp_path, mode):
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = str(probe.getsockname()[1])
    runs = short_run(training_set, tmp_path, mode, f"--mode={mode}", "--eval-examples=24")
    work = [scenario(tmp_path, mode, *runs, second_port=port)]
    start(tmp_path, "torchrun", 8, work, 120)
    scenes = Scenes(tmp_path)
    scenes.compare(f"hpu_{mode}_8", mode)
    records = [compressed((tmp_path / f"{mode}.record.{rank}").read_text()) for rank in range(8)]
    assert len(set(records[1:])) == 1
    kept = [[line for line in record.splitlines() if line not in ONLY_FIRST] for record in records[:2]]
    # Two exchanges between which rank 0 does something are one repeated line on the others.
    first, other = ([line for line, _ in groupby(lines)] for lines in kept)
    assert first == other


ONLY_FIRST = {"Tensor.cpu() of 90 tensors", "hpu.get_device_name()"}
"""What rank 0 does alone: it writes checkpoints, and tells what the run is."""
BATCH = [field.name for field in fields(RowBatch) if field.default is field.default_factory is MISSING]
