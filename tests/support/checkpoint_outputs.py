"""Comparison of this trainer's model with other programs' outputs, for checkpoints in the kit."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.checkpoints.filling import fill_model
from trainer.data.row_batches import RowBatch
from trainer.model.headed import BertForPreTraining


def filled(checkpoint: Checkpoint) -> tuple[BertForPreTraining, list[str]]:
    """Return a model filled from the checkpoint, and the names of weights that the checkpoint lacks."""
    torch.manual_seed(0)
    model = BertForPreTraining(checkpoint.expect_config()).eval()
    return model, fill_model(model, checkpoint)


def batches(place: Path, outputs: Path) -> Iterator[tuple[RowBatch, dict[str, Tensor]]]:
    """Yield each batch of inputs in ``place/outputs.npz``, with the other program's outputs for it."""
    with np.load(place / "outputs.npz") as inputs, np.load(outputs) as found:
        for number in range(3):
            given, wanted = (
                {
                    name.split("/")[1]: torch.from_numpy(values[name])
                    for name in values.files
                    if name.startswith(f"batch{number}/")
                }
                for values in (inputs, found)
            )
            yield _batch(given), wanted


def _batch(given: dict[str, Tensor]) -> RowBatch:
    return RowBatch(
        input_ids=given["input_ids"].int(),
        token_type_ids=given["segment_ids"].int(),
        attention_mask=given["input_mask"].int(),
        masked_lm_positions=given["masked_lm_positions"].int(),
        masked_lm_ids=given["masked_lm_ids"].int(),
        masked_lm_weights=given["masked_lm_weights"].float(),
        next_sentence_labels=given["next_sentence_labels"].flatten().int(),
    )


@torch.no_grad()
def largest_differences(model: BertForPreTraining, place: Path, outputs: Path) -> dict[str, float]:
    """Return the largest difference from the other program's outputs over all batches, by output name.

    place: directory of the checkpoint, whose ``outputs.npz`` holds the inputs.
    """
    largest: dict[str, float] = {}
    for batch, wanted in batches(place, outputs):
        rows, pooled = model.bert(batch)
        logits = model(batch)
        words = torch.log_softmax(logits.masked_lm, -1)
        ours = {
            "sequence_output_last": rows.view(*batch.input_ids.shape, -1),
            "pooled_output": pooled,
            "next_sentence_log_probs": torch.log_softmax(logits.next_sentence, -1),
        }
        if "masked_lm_log_probs" in wanted:
            table = wanted["masked_lm_log_probs"]
            wanted["masked_lm_log_probs"] = table.reshape(-1, table.shape[-1])
            ours["masked_lm_log_probs"] = words[:, : table.shape[-1]]
        for name in ours.keys() & wanted.keys():
            found = float((ours[name] - wanted[name]).abs().max())
            largest[name] = max(largest.get(name, 0.0), found)
    return largest


def with_snappy_blocks(kit: Path, place: Path) -> Path:
    """Copy the checkpoint ``tf1_google``, with an index of Snappy-compressed blocks in place of its index."""
    source = kit / "checkpoints" / "tf1_google"
    place.mkdir()
    for name in ("bert_config.json", "model.ckpt-3.data-00000-of-00001"):
        shutil.copyfile(source / name, place / name)
    shutil.copyfile(source / "model.ckpt-3.index-with-snappy-blocks", place / "model.ckpt-3.index")
    return place
