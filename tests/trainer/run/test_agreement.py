"""Workers that differ in settings, versions, data or weights are ended with one line, before they train."""

from dataclasses import replace

import pytest
import torch

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.records import ShardLayout
from tests.support.launching import launch
from tests.support.meeting import meet
from tests.support.training_runs import WORKER, refuse, words
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.run import agreement
from trainer.run.agreement import (
    check_same_data,
    check_same_settings,
    check_same_weights,
    compute_weights_digest,
)

SAME = {"output_dir": "w", "train_data": "d", "batch_size": 4}

DATA = OpenedDataset(
    name="d",
    layout=ShardLayout(max_seq_length=64, max_predictions_per_seq=10),
    shards=(Shard(name="a.tfrecord", path="", examples=7, md5="11"),),
    vocabulary_size=100,
)


def settled(*others: dict[str, object]) -> list[int]:
    """The exit statuses of workers that have these keys beside the same ones."""
    configs = [Config.of(**SAME | keys) for keys in ({}, *others)]
    return [
        one.status for one in meet(configs, lambda runtime: check_same_settings(runtime, [runtime.config]))
    ]


def the_line(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"base_learning_rate": 0.0001}, "--base-learning-rate is 0.001 on worker 0, 0.0001 on worker 1;"),
        ({"seed": 9}, "--seed is 42 on worker 0, 9 on worker 1;"),
        ({"batch_size": 8}, "--batch-size is 4 on worker 0, 8 on worker 1;"),
        ({"precision": "bf16"}, '--precision is "fp32" on worker 0, "bf16" on worker 1;'),
        ({"steps": 30}, "--steps is 1000 on worker 0, 30 on worker 1;"),
        ({"resume": True}, "--resume is false on worker 0, true on worker 1;"),
        ({"world_size": 3}, "--world-size is 2 on worker 0, 3 on worker 1;"),
        ({"eval_data": "e"}, "--eval-data is not given on worker 0, given on worker 1;"),
        ({"log_every": 3}, "--log-every is 10 on worker 0, 3 on worker 1;"),
    ],
)
def test_a_setting_that_differs_is_named_with_its_flag_the_worker_and_both_values(capsys, keys, said):
    assert settled(keys) == [2, 2]
    line = the_line(capsys)
    assert said in line
    assert line.endswith("start all workers with the same settings, on the same versions")


def test_further_differences_are_named_and_so_is_every_worker(capsys):
    assert settled({}, {"seed": 9, "precision": "bf16"}, {"seed": 9}) == [2] * 4
    line = the_line(capsys)
    assert "--seed is 42 on workers 0 and 1, 9 on workers 2 and 3; --precision differs too" in line


def test_paths_and_logs_of_a_machine_may_differ():
    keys = {"output_dir": "v", "train_data": "other", "json_summary": "x", "tensorboard": True}
    assert settled(keys | {"no_progress_bar": True, "description": "y", "collective": "horovod"}) == [0, 0]


def test_a_model_file_counts_by_what_it_says(tmp_path, capsys):
    sizes = '"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2'
    for name, width in (("a", 64), ("b", 64), ("c", 128)):
        text = f'{{{sizes}, "intermediate_size": {width}, "vocab_size": 100}}'
        (tmp_path / name).write_text(text)
    one, same, other = ({"model_config": str(tmp_path / name)} for name in "abc")
    configs = [Config.of(**SAME | keys) for keys in (one, same)]
    work = lambda runtime: check_same_settings(runtime, [runtime.config])  # noqa: E731
    assert [one.status for one in meet(configs, work)] == [0, 0]
    assert [one.status for one in meet([configs[0], Config.of(**SAME | other)], work)] == [2, 2]
    assert "the model's intermediate_size is 64 on worker 0, 128 on worker 1" in the_line(capsys)


def test_other_versions_are_refused(monkeypatch, capsys):
    versions = iter(["2.1", "2.2"])
    monkeypatch.setattr(agreement, "_find_versions", lambda: {"torch": next(versions)})
    assert settled({}) == [2, 2]
    line = the_line(capsys)
    assert "torch is 2." in line
    assert {"2.1 on worker", "2.2 on worker"} <= {line[i : i + 13] for i in range(len(line))}


def test_a_second_phase_on_one_worker_alone_is_refused(capsys):
    configs = [Config.of(**SAME)] * 2

    def work(runtime):
        check_same_settings(runtime, [runtime.config] * (1 + runtime.collective.rank))

    assert [one.status for one in meet(configs, work)] == [2, 2]
    assert "number of phases is 1 on worker 0, 2 on worker 1" in the_line(capsys)


def opened(*datasets: OpenedDataset) -> list[int]:
    configs = [Config.of(**SAME | {"train_data": f"d{number}"}) for number in range(len(datasets))]

    def work(runtime):
        check_same_data(runtime, {"--train-data": datasets[runtime.collective.rank]})

    return [one.status for one in meet(configs, work)]


def test_other_data_are_refused(capsys):
    fewer = replace(DATA, shards=(replace(DATA.shards[0], examples=5),))
    assert opened(DATA, fewer) == [2, 2]
    line = the_line(capsys)
    assert "--train-data is 7 examples in 1 file (digest " in line
    assert " on worker 0, 5 examples in 1 file (digest " in line
    assert opened(DATA, replace(DATA, shards=(replace(DATA.shards[0], md5="12"),))) == [2, 2]
    assert opened(DATA, replace(DATA, name="elsewhere")) == [0, 0]


def test_data_without_a_manifest_count_by_their_sizes(tmp_path, capsys):
    shards = []
    for name, text in (("a", "1"), ("b", "1"), ("c", "22")):
        (tmp_path / name).write_text(text)
        shards.append(Shard(name="x", path=str(tmp_path / name), examples=7))
    one, same, other = (replace(DATA, shards=(shard,)) for shard in shards)
    assert opened(one, same) == [0, 0]
    assert opened(one, other) == [2, 2]


def test_another_vocabulary_is_refused(capsys):
    assert opened(DATA, replace(DATA, vocabulary_size=101)) == [2, 2]
    assert "vocabulary 100 on worker 0" in the_line(capsys)


def test_weights_that_differ_in_one_bit_are_refused(capsys):
    weights = [torch.arange(6.0).reshape(2, 3).t(), torch.tensor([0.1, -0.0])]
    changed = [weights[0], torch.tensor([0.1, 0.0])]

    def work(runtime):
        check_same_weights(runtime, "whole", [weights, weights, changed][runtime.collective.rank], step=5)

    assert [one.status for one in meet([Config.of(**SAME)] * 3, work)] == [1, 1, 1]
    line = the_line(capsys)
    assert "update 5: the weights of worker 2 differ from those of worker 0" in line
    assert line.endswith("nothing is saved; --resume continues from the last checkpoint, if there is one")


def test_workers_that_hold_other_parts_of_a_model_are_not_compared():
    parts = [("a", [torch.zeros(2)]), ("b", [torch.ones(2)]), ("a", [torch.zeros(2)])]

    def work(runtime):
        check_same_weights(runtime, *parts[runtime.collective.rank], step=5)

    assert [one.status for one in meet([Config.of(**SAME)] * 3, work)] == [0, 0, 0]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_the_digest_is_of_the_bits_of_every_type(kind):
    device = Cpu(Config.of())
    weights = [torch.randn(3, 5, generator=torch.Generator().manual_seed(0)).to(kind)]
    assert compute_weights_digest(device, weights) == compute_weights_digest(device, [weights[0].clone()])
    other = weights[0].clone()
    other[1, 2] = torch.nextafter(other[1, 2].double(), torch.tensor(9.0).double()).to(kind) + 1
    assert compute_weights_digest(device, weights) != compute_weights_digest(device, [other])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_the_digest_is_of_every_number_wherever_it_lies_in_memory(kind, count):
    device = Cpu(Config.of())
    memory = torch.arange(1.0, 12.0).to(kind)
    weight = memory[1 : 1 + count]  # as in the flat memory of many weights
    digest = compute_weights_digest(device, [weight])
    assert digest == compute_weights_digest(device, [weight.clone()])
    for place in range(count):
        other = weight.clone()
        other[place] = -other[place]
        assert compute_weights_digest(device, [other]) != digest


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("environment", "said"),
    [({"TRAINER_ACCIDENT": '{"what": "other weights", "rank": 1, "update": 3}'}, "update 5: the weights of")],
)
def test_a_worker_whose_weights_go_their_own_way_ends_the_run_at_the_next_checkpoint(
    training_set, tmp_path, monkeypatch, environment, said
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    run = words(training_set, tmp_path / "run", "--checkpoint-every=5")
    refuse(launch("torchrun", 2, WORKER, *run, seconds=120), 1, said)
    assert not (tmp_path / "run" / "checkpoints").exists()
