"""Which part of the model runs on which IPU: the stages of its pipeline, and the module that has the loss."""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import accumulate, groupby
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertdata.errors import SettingsError
from trainer.batches import Batch
from trainer.losses import Losses, pretraining_loss
from trainer.model import BertForPreTraining

TENSORS = tuple(field.name for field in fields(Batch) if field.default is MISSING)
_SECOND_EMBEDDINGS = "bert.embeddings.token_type_embeddings"
_HEADS = "bert.pooler.dense"
_NAMES = {"emb": "", "pool": _HEADS, "enc_out": _HEADS, "heads": _HEADS}
_LEAST_LOGIT = -1e4


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The module that each stage begins with (the first with the model itself), and each stage's IPU."""

    begins: tuple[str, ...]
    on: tuple[int, ...]

    @property
    def ipus(self) -> int:
        """IPUs of one copy of the model, a power of 2 as PopTorch wants it."""
        return 1 << max(self.on).bit_length()

    @property
    def least_accumulation(self) -> int:
        """Micro-batches that fill the pipeline, forwards and back; stages side by side on one IPU are one."""
        stages = len(list(groupby(self.on)))
        return 2 * stages - 1


def plan_pipeline(options: dict[str, Any], layers: int) -> Pipeline:
    """The pipeline that Graphcore's keys describe; the heads come last, on the word embeddings' IPU.

    hidden_layers_per_stage: a number, what is left over goes first, beside the embeddings; or a list.
    SettingsError where the layers do not divide as asked.
    """
    if "pipeline_stages" in options:
        begins = _named_stages(options["pipeline_stages"], layers)
    else:
        place = options.get("embeddings_placement", "same_as_hidden_layers")
        apart = {"same_as_hidden_layers": [], "same_ipu": [""], "two_ipus": ["", _SECOND_EMBEDDINGS]}
        if place not in apart:
            raise SettingsError(f"embeddings_placement is {place!r}, expected one of {', '.join(apart)}")
        counts = _layers_per_stage(options.get("hidden_layers_per_stage", layers), layers, not apart[place])
        begins = apart[place] + [_layer(first) for first in accumulate(counts[:-1], initial=0)]
        begins = ["", *begins[1:], _HEADS]
    on = options.get("device_mapping", [*range(len(begins) - 1), 0])
    if len(on) != len(begins) or sorted(set(on)) != list(range(max(on) + 1)):
        wanted = f"expected the IPU, counted from 0, of each of {len(begins)} stages"
        raise SettingsError(f"device_mapping is {on}, {wanted}")
    return Pipeline(tuple(begins), tuple(on))


def _layers_per_stage(wanted: int | list[int], layers: int, with_rest: bool) -> list[int]:
    if isinstance(wanted, list):
        counts = wanted
    else:
        rest = layers % wanted
        counts = [rest] * (rest > 0 and with_rest) + [wanted] * (layers // wanted)
    if sum(counts) != layers or (isinstance(wanted, int) and wanted > layers):
        raise SettingsError(f"hidden_layers_per_stage is {wanted}, which does not make up {layers} layers")
    return counts


def _named_stages(stages: Sequence[Sequence[str]], layers: int) -> list[str]:
    """What each stage begins with, of lists of emb, hid (once for each layer), pool, enc_out and heads."""
    flat, seen, begins = [name for stage in stages for name in stage], 0, list[str]()
    for stage in stages:
        begins.append(_layer(seen) if stage[:1] == ["hid"] else _NAMES.get("".join(stage[:1]), "?"))
        seen += list(stage).count("hid")
    tail = flat[1 + layers :]
    is_whole = flat[: 1 + layers] == ["emb", *["hid"] * layers] and set(tail) == {"pool", "enc_out", "heads"}
    if not is_whole or begins.count(_HEADS) > 1 or "?" in begins:
        names = f"emb, {layers} times hid, and enc_out, pool and heads, those three in one stage"
        raise SettingsError(f"pipeline_stages is {stages}, expected lists of, in order, {names}")
    return begins


def _layer(number: int) -> str:
    return f"bert.encoder.layer.{number}"


class Pretraining(nn.Module):
    """The model with its loss, as PopTorch wants both: of a batch's tensors, the loss and its Losses.

    The loss is fp32 whatever the weights are. Out of training the Losses come alone.
    """

    def __init__(self, poptorch: ModuleType, model: BertForPreTraining) -> None:
        super().__init__()
        self.model = model
        self._identity_loss = poptorch.identity_loss

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor,
        masked_lm_positions: Tensor,
        masked_lm_ids: Tensor,
        masked_lm_weights: Tensor,
        next_sentence_labels: Tensor,
    ) -> Any:
        batch = Batch(
            input_ids=input_ids,
            token_type_ids=token_type_ids,
            attention_mask=attention_mask,
            masked_lm_positions=masked_lm_positions,
            masked_lm_ids=masked_lm_ids,
            masked_lm_weights=masked_lm_weights,
            next_sentence_labels=next_sentence_labels,
        )
        losses = pretraining_loss(self.model(batch, fixed_shapes=True), batch, cross_entropy)
        values = torch.stack([value.detach() for value in losses])
        return (self._identity_loss(losses.total, reduction="none"), values) if self.training else values


def cross_entropy(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """What trainer.losses.cross_entropy gives, of plain operations: PopART differentiates by itself.

    Minus infinity, which stands where the vocabulary is filled up, would make 0 * inf of some of them.
    """
    logits = logits.float().clamp(min=_LEAST_LOGIT)
    losses = F.cross_entropy(logits, ids, reduction="none")
    return losses, (logits.detach().argmax(dim=1) == ids).float()


def average(values: Tensor) -> Tensor:
    """Of rows of Losses, one for each micro-batch, the means averaged and the sums summed up."""
    rows = values.reshape(-1, len(Losses._fields)).float()
    return torch.cat([rows[:, :3].mean(0), rows[:, 3:].sum(0)])


def make_stages(poptorch: ModuleType, pipeline: Pipeline, model: BertForPreTraining) -> None:
    """Mark in the model where each stage begins."""
    for number, (begin, ipu) in enumerate(zip(pipeline.begins, pipeline.on, strict=True)):
        poptorch.BeginBlock(model.get_submodule(begin), user_id=f"Stage{number}", ipu_id=ipu)


def checkpoint_layers(poptorch: ModuleType, model: BertForPreTraining) -> None:
    """Keep what each layer hands on; what lies between is computed again on the way back."""

    def keep(layer: nn.Module, inputs: Any, outputs: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        return tuple(poptorch.recomputationCheckpoint(*outputs)) if layer.training else outputs

    for layer in model.bert.encoder.layer:
        layer.register_forward_hook(keep)


def serialize_projection(poptorch: ModuleType, model: BertForPreTraining, factor: int) -> None:
    """Make the product with the word embeddings in so many parts, one after another."""
    if factor < 1 or model.config.padded_vocab_size % factor:
        wanted = f"expected a divisor of the {model.config.padded_vocab_size} rows of the word embeddings"
        raise SettingsError(f"matmul_serialize_factor is {factor}, {wanted}")
    mode = poptorch.MatMulSerializationMode.OutputChannels

    def project(rows: Tensor, words: Tensor, bias: Tensor) -> Tensor:
        product: Tensor = poptorch.serializedMatMul(rows, words.t(), mode, factor) + bias
        return product

    model.cls.predictions.project = project
