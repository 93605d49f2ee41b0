"""Stages of the model's pipeline: which consecutive layers are computed on which IPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from bertdata.errors import SettingsError
from trainer.config.sections.devices import IpuSection
from trainer.model.headed import HeadedBert

_SECOND_EMBEDDINGS = "bert.embeddings.token_type_embeddings"
_HEADS = "bert.pooler.dense"
_WORD_HEAD = "cls.predictions"
_NAMES = {"emb": "", "pool": _HEADS, "enc_out": _HEADS, "heads": _HEADS}


@dataclass(frozen=True, slots=True)
class IpuPipeline:
    """The stages (consecutive layers) of a pipeline, and the IPU that computes each stage.

    first_modules: name of the first module of each stage. The first stage begins with the model itself ("").
    ipus: number of the IPU of each stage.
    """

    first_modules: tuple[str, ...]
    ipus: tuple[int, ...]

    @property
    def ipus_per_replica(self) -> int:
        """The number of IPUs for one copy of the model. It is a power of 2, as PopTorch requires."""
        return 1 << max(self.ipus).bit_length()

    @property
    def least_accumulation(self) -> int:
        """The least number of micro-batches per update that keeps every stage busy in forward and backward
        direction.

        Neighbouring stages on the same IPU count as one stage.
        """
        stages = len(list(groupby(self.ipus)))
        return 2 * stages - 1


def plan_pipeline(keys: IpuSection, layers: int) -> IpuPipeline:
    """Return the pipeline for the configured settings, which have the meaning of Graphcore's.

    The heads come last, on the IPU that has the word embeddings. The setting hidden_layers_per_stage is a
    list or one number. With one number, layers that are left over join the embeddings in the first stage.
    Raises SettingsError if the layers cannot be divided as configured.
    """
    if keys.pipeline_stages is not None:
        begins = _name_first_modules(keys.pipeline_stages, layers)
    else:
        placement = keys.embeddings_placement or "same_as_hidden_layers"
        # Example with 12 layers and 4 per stage, embeddings on their own IPU: stages begin at "", layers 0, 4
        # and 8, and the heads.
        apart = {"same_as_hidden_layers": [], "same_ipu": [""], "two_ipus": ["", _SECOND_EMBEDDINGS]}
        if placement not in apart:
            raise SettingsError(f"embeddings_placement is {placement!r}, expected one of {', '.join(apart)}")
        counts = _count_layers_per_stage(keys.hidden_layers_per_stage or layers, layers, not apart[placement])
        begins = apart[placement] + [_name_layer(first) for first in accumulate(counts[:-1], initial=0)]
        begins = ["", *begins[1:], _HEADS]
    on = keys.device_mapping or [*range(len(begins) - 1), 0]
    if len(on) != len(begins) or sorted(set(on)) != list(range(max(on) + 1)):
        raise SettingsError(
            f"device_mapping is {on}, expected the IPU, counted from 0, of each of {len(begins)} stages"
        )
    return IpuPipeline(tuple(begins), tuple(on))


def _count_layers_per_stage(wanted: int | Sequence[int], layers: int, with_rest: bool) -> list[int]:
    """Return the number of layers in each stage.

    wanted: configured number of layers per stage, one for all or one for each.
    with_rest: True if layers that are left over may join the first stage.
    """
    if not isinstance(wanted, int):
        counts = list(wanted)
    else:
        rest = layers % wanted
        counts = [rest] * (rest > 0 and with_rest) + [wanted] * (layers // wanted)
    if sum(counts) != layers or (isinstance(wanted, int) and wanted > layers):
        raise SettingsError(f"hidden_layers_per_stage is {wanted}, which does not make up {layers} layers")
    return counts


def _name_first_modules(stages: Sequence[Sequence[str]], layers: int) -> list[str]:
    """Return the name of the first module of each stage.

    stages: for each stage the names of its parts as Graphcore spells them: emb (embeddings), hid (one layer),
    pool, enc_out and heads.
    """
    flat = [name for stage in stages for name in stage]
    seen = 0
    begins = list[str]()
    for stage in stages:
        begins.append(_name_layer(seen) if stage[:1] == ["hid"] else _NAMES.get("".join(stage[:1]), "?"))
        seen += list(stage).count("hid")
    tail = flat[1 + layers :]
    is_whole = flat[: 1 + layers] == ["emb", *["hid"] * layers] and set(tail) == {"pool", "enc_out", "heads"}
    if not is_whole or begins.count(_HEADS) > 1 or "?" in begins:
        raise SettingsError(
            f"pipeline_stages is {stages}, expected lists of, in order, emb, {layers} times hid, and "
            "enc_out, pool and heads, those three in one stage"
        )
    return begins


def _name_layer(number: int) -> str:
    """Return the module name of the layer with this number."""
    return f"bert.encoder.layer.{number}"


def mark_stages(poptorch: ModuleType, pipeline: IpuPipeline, model: HeadedBert) -> None:
    """Mark in the model where each stage of the pipeline begins."""
    for number, (first, ipu) in enumerate(zip(pipeline.first_modules, pipeline.ipus, strict=True)):
        if first == _HEADS and model.bert.pooler is None:
            first = _WORD_HEAD
        poptorch.BeginBlock(model.get_submodule(first), user_id=f"Stage{number}", ipu_id=ipu)


def checkpoint_layers(poptorch: ModuleType, model: HeadedBert) -> None:
    """Let each layer keep only its output for the backward pass, which then computes the inside of the layer
    again.
    """

    def keep_output(layer: nn.Module, inputs: Any, outputs: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        return tuple(poptorch.recomputationCheckpoint(*outputs)) if layer.training else outputs

    for layer in model.bert.encoder.layer:
        layer.register_forward_hook(keep_output)


def serialize_projection(poptorch: ModuleType, model: Any, factor: int) -> None:
    """Split the product with the word embeddings into ``factor`` parts, computed one after the other to save
    memory.
    """
    if factor < 1 or model.config.padded_vocab_size % factor:
        raise SettingsError(
            f"matmul_serialize_factor is {factor}, expected a divisor of the "
            f"{model.config.padded_vocab_size} rows of the word embeddings"
        )
    mode = poptorch.MatMulSerializationMode.OutputChannels

    def multiply_in_parts(rows: Tensor, words: Tensor, bias: Tensor) -> Tensor:
        logits: Tensor = poptorch.serializedMatMul(rows, words.t(), mode, factor) + bias
        return logits

    model.cls.predictions.project = multiply_in_parts
