"""Devices, launchers and settings that cannot train a split model are refused in one line."""

import pytest

from bertdata.errors import SettingsError
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.splitting.plan import fit
from trainer.splitting.plan.fit import check_split
from trainer.workers.collective import Collective


class Connected(Collective):
    """One worker that claims to be connected with others."""

    name = "torch_distributed"


class Whole(Cpu):
    """A processor that claims to have an optimiser of its own."""

    ends_updates = True


def check(kind: type[Cpu] = Cpu, workers: type[Collective] = Connected, **settings: object) -> None:
    device = kind(Config.of(**{"clipping": "per_update", **settings}))
    check_split("sharded", device, workers(device))


def test_a_processor_whose_workers_are_connected_is_accepted():
    check()
    check(clipping="none")
    check(compile=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": Whole}, "strategy is sharded, but device 'cpu' takes whole models only"),
        ({"workers": Collective}, "start the workers with torchrun; found single"),
        ({"compile_only": True}, "strategy sharded has no --compile-only: give --compile"),
        ({"clipping": "per_micro_batch"}, "clipping is per_micro_batch; give --clipping per_update or none"),
        ({"clipping": "usual", "optimiser": "lamb-mlperf"}, "clipping is per_micro_batch; give --clipping"),
        ({"allreduce_post_accumulation": False}, "in its own way: leave out allreduce_post_accumulation"),
    ],
)
def test_what_does_not_fit_is_refused(settings, said):
    with pytest.raises(SettingsError, match=said):
        check(**settings)


def test_a_model_that_is_to_be_one_graph_is_refused(monkeypatch):
    monkeypatch.setattr(Cpu, "compiles_whole", True)  # as with CUDA graphs
    with pytest.raises(SettingsError, match="which a CUDA graph has as a whole: leave out --cuda-graphs"):
        check(compile=True)


def test_an_older_pytorch_is_refused(monkeypatch):
    monkeypatch.setattr(fit, "_has_fully_shard", lambda: False)
    with pytest.raises(SettingsError, match=r"strategy sharded needs torch 2.6 or later, found \d"):
        check()


def test_an_older_pytorch_is_refused_for_a_pipeline(monkeypatch):
    monkeypatch.setattr(fit, "_has_pipelining", lambda: False)
    with pytest.raises(SettingsError, match=r"strategy pipelined needs a newer torch than \d"):
        fit.check_pipelining()
