"""Training on ModernBERT's rows: the loader's own, resumed to the bit, refused where they cannot be."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertdata.cli.main import main
from bertdata.errors import SettingsError
from bertdata.loaders.modernbert.loader import ModernBertLoader
from bertdata.loaders.modernbert.settings import ModernBertSettings
from bertdata.loaders.sequences import StoredSequences
from tests.support.training_runs import losses, refuse, start_workers, tensors, words
from trainer.config.settings import Config
from trainer.data.batches import FlatBatch
from trainer.data.forms import make_form
from trainer.data.loader import Loader, make_dealer, make_order
from trainer.data.modernbert_rows import ModernBertRows
from trainer.data.opening import open_configured, prepare_for_training
from trainer.data.order import Position
from trainer.data.reading import Reading
from trainer.data.rows import find_rows

LENGTH, SIZE, ACCUMULATION, SEED, RATE = 64, 4, 2, 42, 0.3
MODERNBERT = ("--masking=modernbert", f"--masked-lm-prob={RATE}", f"--accumulation={ACCUMULATION}")
IGNORED = -100


@pytest.fixture(scope="module")
def blocks(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """Unmasked sentences of up to 64 ids."""
    place = tmp_path_factory.mktemp("sentences") / "set"
    kind = ["--objective=mlm", "--no-masks", "--blocks=eos", f"--max-seq-length={LENGTH}", "--workers=1"]
    paths = [f"--vocab={small_vocabulary_file}", f"--output={place}"]
    assert main(["create", *map(str, corpus), *kind, *paths]) == 0
    return place


def configured(place: Path, **keys: Any) -> Config:
    return Config.of(train_data=str(place), masking="modernbert", masked_lm_prob=RATE, **keys)


def rows_of(place: Path) -> ModernBertRows:
    config = configured(place)
    found = find_rows(config, prepare_for_training(config, open_configured(config, str(place))))
    assert isinstance(found, ModernBertRows)
    return found


def loader_of(place: Path, position: Any = (0, 0, 0), rank: int = 0, workers: int = 1) -> Loader:
    rows = rows_of(place)
    return Loader(
        rows,
        form=make_form(rows, batch_size=SIZE),
        batch_size=SIZE,
        accumulation=ACCUMULATION,
        workers=workers,
        rank=rank,
        seed=SEED,
        position=position,
    )


def originals(place: Path, rank: int = 0, world: int = 1) -> ModernBertLoader:
    """The loader itself over the same examples."""
    rows = rows_of(place)
    settings = ModernBertSettings(
        batch_size=SIZE * ACCUMULATION,
        micro_batch_size=SIZE,
        max_seq_len=LENGTH,
        mask_prob=RATE,
        order_seed=SEED,
        mask_seed=SEED,
        rank=rank,
        world=world,
    )
    ids = {"mask_id": rows.ids.mask_id, "padding_id": rows.ids.padding_id}
    return ModernBertLoader(StoredSequences(rows.data), settings, **ids)


def as_lists(batch: FlatBatch) -> tuple[Any, ...]:
    """Real ids, their labels, and the ends of the sequences."""
    labels = np.full(len(batch.input_ids), IGNORED)
    used = batch.masked_lm_weights.numpy() > 0
    labels[batch.masked_lm_rows.numpy()[used]] = batch.masked_lm_ids.numpy()[used]
    ends = np.unique(np.cumsum(batch.lengths())).tolist()  # those of missing sequences are equal
    return batch.input_ids[: batch.tokens].tolist(), labels[: batch.tokens].tolist(), ends


def rows_as_lists(batch: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The same of each row of the loader's batch, without its padding."""
    found = []
    for row, spans in enumerate(batch["cu_seqlens"]):
        tokens = int(batch["attention_mask"][row].sum())
        ends = [end for end in spans.tolist() if 0 < end <= tokens]
        found.append(
            (batch["input_ids"][row][:tokens].tolist(), batch["labels"][row][:tokens].tolist(), ends)
        )
    return found


@pytest.mark.parametrize(("rank", "workers"), [(0, 1), (0, 2), (1, 2)])
def test_micro_batches_are_the_rows_of_the_loader_over_several_epochs(blocks, rank, workers):
    loader, wanted, epochs = (
        loader_of(blocks, rank=rank, workers=workers),
        originals(blocks, rank, workers),
        set(),
    )
    while epochs != {0, 1, 2}:
        update = next(loader)
        assert [as_lists(batch) for batch in update.batches] == rows_as_lists(next(wanted))
        assert update.position.rows == wanted.state_dict()["batch"]
        epochs.add(update.position.epoch)
    loader.close()


def test_each_update_has_its_own_number_of_micro_batches(blocks):
    """A batch that grows: also over the ends of epochs, where the loader begins anew."""
    rows = rows_of(blocks)
    dealer = make_dealer(
        rows, make_order(rows.data, SEED, Reading(8, 0)), Reading(8, 0), lengths=lambda file: np.ones(1),
        batch_size=SIZE, accumulation=1, workers=1, rank=0, seed=SEED,
    )  # fmt: skip
    found = rows.find_for_sizes(dealer, Position(), 5, lambda update: update // 2)
    updates = list(islice(found, 26))
    assert [len(one.row_ends) // SIZE for one in updates] == [number // 2 for number in range(5, 31)]
    assert {one.positions[0].epoch for one in updates} >= {0, 1}


@pytest.mark.parametrize(("rank", "workers"), [(0, 1), (1, 2)])
def test_it_goes_on_from_the_position_behind_every_update(blocks, rank, workers):
    loader = loader_of(blocks, rank=rank, workers=workers)
    updates = list(islice(loader, 12))
    loader.close()
    for number, update in enumerate(updates[:-1]):
        resumed = loader_of(blocks, position=update.position, rank=rank, workers=workers)
        found = next(resumed)
        resumed.close()
        assert found.position == updates[number + 1].position
        for one, other in zip(found.batches, updates[number + 1].batches, strict=True):
            assert as_lists(one) == as_lists(other)


def test_rank_0_makes_no_earlier_masks_again(blocks, monkeypatch):
    """It resumes at once: only lengths are packed."""
    loader = loader_of(blocks)
    position = next(islice(loader, 4, None)).position
    loader.close()
    taken = []
    take = StoredSequences.take
    monkeypatch.setattr(StoredSequences, "take", lambda *given: taken.append(given) or take(*given))
    rows = rows_of(blocks)
    rows.go_to(
        ModernBertSettings(batch_size=8, micro_batch_size=4, max_seq_len=LENGTH, mask_prob=RATE),
        position,
        [2] * position.rows,
    )
    assert [sequences for sequences, *_ in taken if sequences is rows.sequences] == []


@pytest.mark.thorough
@pytest.mark.usefixtures("one_thread")
def test_a_run_is_resumed_in_the_middle_of_an_epoch_bit_for_bit(trainer, blocks, tmp_path):
    whole, cut = (words(blocks, tmp_path / name, "--steps=5", *MODERNBERT) for name in ("whole", "cut"))
    outcome = trainer(*whole)
    assert outcome.status == 0, outcome.err
    assert losses(tmp_path / "whole")[0]["mlm_loss"] > 0
    assert trainer(*cut, "--steps-this-run=2").status == 0
    assert trainer(*cut, "--resume").status == 0
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert tensors(tmp_path / "cut", 5) == tensors(tmp_path / "whole", 5)


@pytest.mark.thorough
@pytest.mark.usefixtures("one_thread")
def test_two_workers_are_resumed_bit_for_bit(blocks, tmp_path):
    whole, cut = (words(blocks, tmp_path / name, "--steps=4", *MODERNBERT) for name in ("whole", "cut"))
    for run in (whole, (*cut, "--steps-this-run=2"), (*cut, "--resume")):
        outcome = start_workers("torchrun", 2, *run)
        assert outcome.status == 0, outcome.err
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert tensors(tmp_path / "cut", 4) == tensors(tmp_path / "whole", 4)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--bins=2",), "packs its rows itself"),
        (("--pack-on-load",), "packs its rows itself"),
        (("--rows",), "packs its rows itself"),
        (("--masked-lm-prob-schedule=linear", "--masked-lm-prob-end=0.1"), "has one rate"),
        (("--batch-size=512",), "do not fill a batch of 2 rows"),
    ],
)
def test_settings_that_do_not_fit_are_refused(trainer, blocks, tmp_path, flags, said):
    refuse(trainer(*words(blocks, tmp_path / "run", *MODERNBERT, *flags)), 2, said)


def test_a_device_that_needs_rows_is_refused(blocks):
    with pytest.raises(SettingsError, match="flat batches"):
        make_form(rows_of(blocks), batch_size=SIZE, padded=True)


def test_pairs_of_segments_are_refused(trainer, training_set, tmp_path):
    refuse(trainer(*words(training_set, tmp_path / "run", *MODERNBERT)), 2, "takes ids alone", "segment")


def test_keys_of_dynamic_masks_have_no_effect(trainer, blocks, tmp_path):
    outcome = trainer(
        *words(blocks, tmp_path / "run", *MODERNBERT, "--steps-this-run=1", "--whole-word-mask")
    )
    assert outcome.status == 0, outcome.err
    assert "without effect on device cpu: whole_word_mask" in outcome.err
