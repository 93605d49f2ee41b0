"""Views of examples without masks: no label of -100 alone reaches a model."""

import pickle
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

import bertdata
from bertdata.errors import SettingsError

NO_MASKS = (
    r"its examples have no masks, so that \{view\} would give no labels; open_dataset\(...\).masked\(\)"
)
SIZES = {"max_seq_length": 64, "max_predictions_per_seq": 20, "workers": 1}


@pytest.fixture(scope="module", params=["bert", "mlm"])
def unmasked(
    request: pytest.FixtureRequest,
    corpus: list[Path],
    small_vocabulary_file: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    made = {"vocab": small_vocabulary_file, "objective": request.param, "masks": False, **SIZES}
    output = tmp_path_factory.mktemp(request.param) / "out"
    bertdata.create(corpus[:1], output, **made)
    return output


def test_views_with_labels_refuse_examples_without_masks(unmasked: Path) -> None:
    data = bertdata.open_dataset(unmasked)
    with pytest.raises(SettingsError, match=NO_MASKS.replace(r"\{view\}", r"\.collator\(\)")) as found:
        data.collator()
    assert str(found.value).startswith(f"{unmasked}: ")
    for streaming in (True, False):
        with pytest.raises(SettingsError, match=NO_MASKS.replace(r"\{view\}", r"\.datasets\(\)")):
            data.datasets(streaming=streaming)


def test_rows_of_examples_without_masks_have_no_labels(unmasked: Path) -> None:
    data = bertdata.open_dataset(unmasked)
    assert "labels" not in next(data.numpy())
    assert "labels" not in next(data.fairseq_batches(batch_size=8))
    assert "labels" in next(data.masked().numpy())


def test_the_remedy_gives_every_view_labels(unmasked: Path) -> None:
    data = bertdata.open_dataset(unmasked).masked(max_predictions_per_seq=9)
    batch = next(iter(DataLoader(data.torch(), batch_size=8, collate_fn=data.collator())))
    assert (batch["labels"] != -100).any(dim=1).all()
    assert any(label != -100 for label in next(iter(data.datasets()))["labels"])


def test_files_without_a_manifest_are_looked_into(unmasked: Path) -> None:
    shard = next(unmasked.glob("*.tfrecord"))
    objective = bertdata.open_dataset(unmasked).layout.objective
    data = bertdata.open_dataset(shard, unverified=True, objective=objective)
    with pytest.raises(SettingsError, match="its examples have no masks"):
        data.collator()


def test_a_mixture_names_its_source_without_masks(
    corpus: list[Path], small_vocabulary_file: Path, unmasked: Path, tmp_path: Path
) -> None:
    objective = bertdata.open_dataset(unmasked).layout.objective
    made = {"vocab": small_vocabulary_file, "objective": objective, **SIZES}
    bertdata.create(corpus[:1], tmp_path / "masked", **made)
    mixture = bertdata.open_dataset({tmp_path / "masked": 0.5, unmasked: 0.5}, examples=20)
    with pytest.raises(SettingsError, match="its examples have no masks") as found:
        mixture.collator()
    assert str(found.value).startswith(f"{unmasked}: ")


def test_a_collator_draws_masks_of_the_share_that_is_asked_for(unmasked: Path) -> None:
    data = bertdata.open_dataset(unmasked)
    texts = [list(example.ids) for example in data]
    collate = pickle.loads(pickle.dumps(data.collator(masking="dynamic", masked_lm_prob=0.3)))

    def epoch(seed: int) -> list[dict[str, torch.Tensor]]:
        torch.manual_seed(seed)
        return list(DataLoader(data.torch(), batch_size=16, collate_fn=collate))

    first, again, other = epoch(1), epoch(1), epoch(2)
    labels = torch.cat([batch["labels"] for batch in first])
    assert torch.equal(labels, torch.cat([batch["labels"] for batch in again]))
    assert not torch.equal(labels, torch.cat([batch["labels"] for batch in other]))
    ids = torch.cat([batch["input_ids"] for batch in first])
    assert 0.2 < (labels != -100).sum() / sum(map(len, texts)) < 0.33
    for text, row, label in zip(texts, ids.tolist(), labels.tolist(), strict=True):
        assert [old if new == -100 else new for old, new in zip(row, label, strict=True)][: len(text)] == text


def test_masks_of_a_batch_differ_from_those_of_the_next(unmasked: Path) -> None:
    data = bertdata.open_dataset(unmasked)
    collate, examples = data.collator(masking="dynamic"), data[:4]
    assert not torch.equal(collate(examples)["labels"], collate(examples)["labels"])


def test_a_collator_has_no_masks_that_an_examples_number_decides(unmasked: Path) -> None:
    with pytest.raises(SettingsError, match=r"masking is 'fairseq', expected 'dynamic'; .masked\(masking"):
        bertdata.open_dataset(unmasked).collator(masking="fairseq")
