"""Checkpoints of split models: what any division writes, any other reads, and so does a single worker."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from trainer.checkpoints.checkpoint import MOMENTS, WEIGHTS, get_checkpoint_path, make_initial_state
from trainer.checkpoints.formats.convert import convert
from trainer.checkpoints.reading import read_state, read_tensors
from trainer.checkpoints.source import open_checkpoint
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.errors import ReportedError
from trainer.model.headed import BertForPreTraining
from trainer.splitting.held import WeightPart
from trainer.splitting.pieces import keep_layers
from trainer.splitting.split_tensors import SplitTensors, read_split_weights
from trainer.update.worker import ModelShare

SHAPE = ModelConfig(
    vocab_size=61,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=12,
)
CONFIG = Config.of()
WHOLE = {name: torch.randn(weight.shape) for name, weight in BertForPreTraining(SHAPE).state_dict().items()}


class Threads:
    """Workers as threads of this process: what the collectives of processes do, without their transport."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=20)

    def of(self, rank: int) -> SimpleNamespace:
        def gather(value: Any) -> list[Any]:
            self.values[rank] = json.dumps(value)
            self.barrier.wait()
            found = [json.loads(text) for text in self.values]
            self.barrier.wait()
            return found

        return SimpleNamespace(rank=rank, size=self.size, gather=gather, barrier=lambda: gather(None))


class Held:
    """The parts of one worker: layers by stage, and of each weight some rows or all."""

    def __init__(self, division: ModelShare, *, sharded: bool, values: bool) -> None:
        with torch.device("meta"):
            own = BertForPreTraining(SHAPE)
        bounds = [round(3 * stage / division.stages) for stage in range(division.stages + 1)]
        layers = range(bounds[division.stage], bounds[division.stage + 1])
        keep_layers(own, layers)
        self.weights, self.moments = [], []
        for number, (name, tensor) in enumerate(own.state_dict().items()):
            full = WHOLE[name]
            rows = len(full) if full.dim() else 1
            cut = -(-rows // division.copies)
            start = min(rows, division.copy * cut) if sharded else 0
            stop = min(rows, start + cut) if sharded else rows
            is_tied_copy = name == "bert.embeddings.word_embeddings.weight" and division.stage > 0
            writes = not is_tied_copy and (sharded or number % division.copies == division.copy)
            for parts, prefix, factor in ((self.weights, "", 1.0), (self.moments, "exp_avg/", 0.25)):
                held = full[start:stop] * (factor if values else 0.0)
                parts.append(WeightPart(prefix + name, tuple(tensor.shape), start, held, writes))
        self.applied = 0

    def weight_parts(self):
        return self.weights

    def moment_parts(self):
        return self.moments

    def set_applied(self, applied):
        self.applied = applied

    def has_values_of(self, other):
        pairs = zip(self.weights + self.moments, other.weights + other.moments, strict=True)
        return all(torch.equal(one.rows, two.rows) for one, two in pairs)


class Failure(ReportedError):
    """The end of all workers, with the error that rank 0 says."""


def run(tmp_path, stages, copies, work):
    """Each worker's result of work(division, tensors made for what it holds)."""
    threads = Threads(stages * copies)
    # In fine-tuning there are no data whose vocabulary the checkpoint's must fit.
    config = Config.of(output_dir=str(tmp_path), keep_checkpoints=3, start_moments=True, task="mrpc")

    def one(rank):
        division = ModelShare(copy=rank % copies, copies=copies, stage=rank // copies, stages=stages)

        def stop_all(error):
            raise Failure(1) from error

        def empty_model(shape):
            with torch.device("meta"):
                return BertForPreTraining(shape)

        runtime = SimpleNamespace(
            config=config,
            model_share=division,
            collective=threads.of(rank),
            device=Cpu(CONFIG),
            stop_all=stop_all,
            empty_model=empty_model,
            log=lambda line: None,
            task=SimpleNamespace(head=None, check_head=lambda missing, path: None),
        )
        return work(division, lambda held: SplitTensors(runtime, SHAPE, held))

    with ThreadPoolExecutor(stages * copies) as pool:
        return [future.result() for future in [pool.submit(one, rank) for rank in range(stages * copies)]]


def save(tmp_path, stages, copies, *, sharded=False):
    state = make_initial_state(CONFIG, SHAPE)

    def work(division, tensors_of):
        held = Held(division, sharded=sharded, values=True)
        tensors_of(held).save(state, None)

    run(tmp_path, stages, copies, work)
    return get_checkpoint_path(str(tmp_path), state)


DIVISIONS = [(1, 3, True), (3, 1, False), (2, 2, False), (2, 2, True), (1, 2, True), (1, 5, True)]


@pytest.mark.parametrize(("stages", "copies", "sharded"), DIVISIONS)
@pytest.mark.thorough_after_first
def test_a_checkpoint_is_read_whole_and_by_any_other_division(tmp_path, stages, copies, sharded):
    path = save(tmp_path, stages, copies, sharded=sharded)
    saved = read_state(path)
    whole = Held(ModelShare(copy=0, copies=1), sharded=False, values=True)
    for name, parts in ((WEIGHTS, whole.weights), (MOMENTS, whole.moments)):
        found = read_tensors(path, saved, name)
        assert sorted(found) == sorted(part.name for part in parts)
        assert all(torch.equal(found[part.name], part.rows) for part in parts)

    for other_stages, other_copies, other_sharded in DIVISIONS:

        def read(division, tensors_of, sharded=other_sharded):
            held = Held(division, sharded=sharded, values=False)
            tensors_of(held).read(path, saved, 7)
            return held.has_values_of(Held(division, sharded=sharded, values=True)), held.applied

        found = run(tmp_path, other_stages, other_copies, read)
        assert found == [(True, 7)] * other_stages * other_copies


def test_files_are_those_of_hugging_faces_sharded_form(tmp_path):
    path = save(tmp_path, 2, 2)
    names = {file.name for file in path.iterdir()}
    parts = [f"{number:05d}-of-00004.safetensors" for number in (1, 2, 3, 4)]
    files = {f"{stem}-{part}" for stem in ("model", "optimizer") for part in parts}
    indexes = {"model.safetensors.index.json", "optimizer.safetensors.index.json"}
    assert names == {"state.json", *files, *indexes}
    assert set(read_state(path).files) == names - {"state.json"}
    index = json.loads((path / "model.safetensors.index.json").read_text())
    sizes = []
    for part in parts:
        tensors = load_file(path / f"model-{part}")
        assert all(index["weight_map"][name] == f"model-{part}" for name in tensors)
        sizes.append(sum(tensor.numel() for tensor in tensors.values()))
    assert index["metadata"]["total_size"] == 4 * sum(sizes)
    assert max(sizes) < 0.5 * sum(sizes)


def test_a_split_checkpoint_is_converted_and_started_from(tmp_path):
    path = save(tmp_path / "run", 2, 1)
    convert(str(path), str(tmp_path / "there"), to="nvidia")
    convert(str(path), str(tmp_path / "back"), to="bertdata")
    for source in (path, tmp_path / "back", tmp_path / "there"):

        def start(division, tensors_of, source=source):
            held = Held(division, sharded=True, values=False)
            tensors_of(held).read_weights(str(source))
            return held

        for rank, held in enumerate(run(tmp_path, 1, 3, start)):
            wanted = Held(ModelShare(copy=rank, copies=3), sharded=True, values=True)
            assert all(
                torch.equal(one.rows, two.rows) for one, two in zip(held.weights, wanted.weights, strict=True)
            )
    assert open_checkpoint(str(path)).weights.keys() == BertForPreTraining(SHAPE).state_dict().keys()


@pytest.mark.parametrize(
    "damage", ["model-00002-of-00003.safetensors", "optimizer-00001-of-00003.safetensors"]
)
def test_a_damaged_file_ends_all_workers_with_its_name(tmp_path, damage):
    path = save(tmp_path, 3, 1)
    file = path / damage
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    saved = read_state(path)

    def read(division, tensors_of):
        held = Held(division, sharded=False, values=False)
        with pytest.raises(Failure) as found:
            tensors_of(held).read(path, saved, 0)
        return str(found.value.__cause__)

    assert all(f"{damage}: is damaged" in message for message in run(tmp_path, 3, 1, read))


def test_a_checkpoint_of_another_shape_is_refused_by_all(tmp_path):
    path = save(tmp_path, 2, 1)
    saved = read_state(path)

    def read(division, tensors_of):
        held = Held(division, sharded=False, values=False)
        part = held.weights[-1]
        wide = torch.zeros(part.shape[0] + 1, *part.shape[1:])
        held.weights[-1] = part._replace(shape=tuple(wide.shape), rows=wide)
        with pytest.raises(Failure) as found:
            tensors_of(held).read(path, saved, 0)
        return str(found.value.__cause__)

    assert all("has shape [" in message for message in run(tmp_path, 2, 1, read))


def test_a_full_disk_leaves_no_checkpoint(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trainer.splitting.split_tensors.write_rows", full)
    state = make_initial_state(CONFIG, SHAPE)

    def work(division, tensors_of):
        held = Held(division, sharded=True, values=True)
        with pytest.raises(Failure) as found:
            tensors_of(held).save(state, None)
        return str(found.value.__cause__)

    messages = run(tmp_path, 1, 2, work)
    path = get_checkpoint_path(str(tmp_path), state)
    assert messages == [f"{path}: rank {rank}: No space left on device" for rank in (0, 1)]
    assert list(tmp_path.iterdir()) == []


def test_a_weight_that_is_no_number_is_seen_by_all(tmp_path):
    def work(division, tensors_of):
        held = Held(division, sharded=False, values=True)
        tensors = tensors_of(held)
        before = tensors.are_finite()
        if division.stage == 2:
            held.weights[0].rows.view(-1)[0] = torch.nan
        return before, tensors.are_finite()

    assert run(tmp_path, 3, 1, work) == [(True, False)] * 3


@pytest.mark.parametrize(("gone", "is_read"), [((), True), ((1,), False), ((0, 1), False)])
def test_a_checkpoint_that_is_gone_for_one_worker_is_read_by_none(tmp_path, gone, is_read):
    path = str(save(tmp_path, 2, 1))

    def work(division, tensors_of):
        held = Held(division, sharded=False, values=False)
        runtime = tensors_of(held)._runtime
        runtime.task = SimpleNamespace(check_head=lambda missing, path: None)

        def unless_gone(read):
            return None if division.stage in gone else read()

        found = read_split_weights(runtime, SHAPE, held, path, unless_gone)
        values = Held(division, sharded=False, values=True).weights
        filled = all(torch.equal(one.rows, two.rows) for one, two in zip(held.weights, values, strict=True))
        return found, filled

    assert run(tmp_path, 2, 1, work) == [(is_read, stage not in gone) for stage in (0, 1)]
