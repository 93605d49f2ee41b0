"""Runs in an object store whose machines are taken away: killed, stopped, and resumed by other machines."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from tests.support.object_stores import Store, divided, one_store
from tests.support.training_runs import errors, losses, start_workers, words
from trainer.remote import claim
from trainer.remote.folders import find_working_folder

pytestmark = pytest.mark.usefixtures("one_thread", "cache")

RUN = ("--checkpoint-every=2", "--accumulation=2")


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The cache of this machine, which is lost when the machine is."""
    place = tmp_path / "cache"
    monkeypatch.setenv("BERTDATA_CACHE", str(place))
    return place


def accident(monkeypatch: pytest.MonkeyPatch, what: str, update: int) -> None:
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": what, "rank": 0, "update": update}))


def read_weights(store: Store, number: int) -> dict[str, torch.Tensor]:
    return load(store.get(f"run/checkpoints/step-{number:08d}/model.safetensors"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("store", "update"), divided({str(update): update for update in range(1, 11)}), indirect=["store"]
)
def test_killed_anywhere_it_is_resumed_by_other_workers_on_another_machine(
    store, update, trainer, training_set, tmp_path, cache, monkeypatch
):
    place = tmp_path / "local"
    assert trainer(*words(training_set, place, *RUN)).status == 0
    run = words(training_set, f"{store.url}/run", *RUN)
    accident(monkeypatch, "kill", update)
    assert start_workers("alone", 1, *run).status != 0
    monkeypatch.delenv("TRAINER_ACCIDENT")
    shutil.rmtree(cache)
    # The next machine has two workers with one micro-batch each, where the first had one worker with two.
    resumed = start_workers("torchrun", 2, *run, "--accumulation=1", "--resume")
    assert resumed.status == 0, resumed.err
    assert "is writing here" not in resumed.err
    whole = load((place / "checkpoints/step-00000010/model.safetensors").read_bytes())
    for name, tensor in read_weights(store, 10).items():
        assert torch.allclose(tensor, whole[name], atol=1e-4), name
    for ours, others in zip(losses(find_working_folder(f"{store.url}/run")), losses(place), strict=True):
        assert ours == pytest.approx(others, abs=1e-4)


@one_store
def test_a_killed_run_is_resumed_to_the_bit(store, trainer, training_set, tmp_path, cache, monkeypatch):
    place = tmp_path / "local"
    assert trainer(*words(training_set, place, *RUN)).status == 0
    run = words(training_set, f"{store.url}/run", *RUN)
    accident(monkeypatch, "kill", 8)
    assert start_workers("alone", 1, *run).status != 0
    shutil.rmtree(cache)
    resumed = trainer(*run, "--resume")
    assert resumed.status == 0, resumed.err
    for name in ("model.safetensors", "optimizer.safetensors"):
        file = f"checkpoints/step-00000010/{name}"
        assert store.get(f"run/{file}") == (place / file).read_bytes()
    assert "run/unfinished/run.lock" not in store.names()


@one_store
def test_sigterm_gives_a_checkpoint_in_the_store(store, training_set, monkeypatch):
    accident(monkeypatch, "term", 5)
    run = words(training_set, f"{store.url}/run", "--checkpoint-every=100")
    ended = start_workers("alone", 1, *run)
    assert ended.status == 0, ended.err
    assert "stopped after update" in ended.err
    (name,) = [name for name in store.names("run") if name.endswith("state.json")]
    assert f"checkpoint {int(name[17:25])} is in {store.url}/run" in ended.err


@one_store
def test_a_second_run_is_refused_while_the_first_one_runs(store, trainer, training_set, cache, monkeypatch):
    """On another machine, which sees nothing but the store."""
    url = f"{store.url}/run"
    held = claim.Claim(url, print, lambda: None)
    monkeypatch.setattr(claim, "RENEW_SECONDS", 0.2)
    monkeypatch.setattr(claim, "_name_machine", lambda: "first machine")
    held.take()
    monkeypatch.setattr(claim, "_name_machine", lambda: "second machine")
    refused = trainer(*words(training_set, url))
    (line,) = errors(refused)
    assert refused.status == 2
    assert f"{url}: another run (process {os.getpid()} on " in line
    assert "is writing here; wait for its end, or choose another --output-dir" in line
    assert "opening the data" not in refused.err
    held.release()
    ended = trainer(*words(training_set, url))
    assert ended.status == 0, ended.err


@pytest.mark.thorough
@one_store
def test_the_claim_of_a_killed_machine_hinders_nobody_for_long(store, trainer, training_set, monkeypatch):
    url = f"{store.url}/run"
    monkeypatch.setattr(claim, "STALE_SECONDS", 2.0)
    store.put("run/unfinished/run.lock", b'{"owner": "process 1 on lost", "token": "x"}\n')
    begun = time.monotonic()
    ended = trainer(*words(training_set, url))
    assert ended.status == 0, ended.err
    assert time.monotonic() - begun > 1.0
    assert "process 1 on lost wrote here" in ended.err


@pytest.mark.thorough
@one_store
def test_a_run_whose_claim_was_taken_over_ends(store, trainer, training_set, monkeypatch):
    url = f"{store.url}/run"
    monkeypatch.setattr(claim, "RENEW_SECONDS", 0.05)
    make = claim.Claim.take

    def take(self: claim.Claim) -> None:
        make(self)
        store.put("run/unfinished/run.lock", b'{"owner": "process 1 on other", "token": "x"}\n')

    monkeypatch.setattr(claim.Claim, "take", take)
    ended = trainer(*words(training_set, url, "--steps=100000", "--warmup=0", "--log-every=1000"))
    assert ended.status == 1
    assert "another run has begun to write here" in ended.err
    assert store.get("run/unfinished/run.lock").startswith(b'{"owner": "process 1 on other"')


@one_store
def test_a_missing_bucket_is_one_line(store, trainer, training_set):
    refused = trainer(*words(training_set, f"{store.scheme}://no-such-bucket/run"))
    (line,) = errors(refused)
    assert refused.status == 2
    assert f"{store.scheme}://no-such-bucket/run: there is no bucket no-such-bucket" in line
    assert "opening the data" not in refused.err
