"""Sections of an update: batch, precision and clipping, the optimiser, the loss scale."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bertdata.config.declared import setting
from bertdata.config.settings import check
from trainer.config.schedules.form import Preset
from trainer.config.sections.section import Section, named, shown
from trainer.plugins import find

_DEFAULT_BATCH_SIZE = 32


@dataclass(frozen=True, kw_only=True)
class UpdateSection(Section):
    """Keys of an update of the model's weights. None: the optimiser's own value, unless said otherwise."""

    batch_size: int | None = shown(
        None, "examples of one micro-batch on one worker (default: 32)", least=1, by_phase=True
    )
    accumulation: int | None = shown(
        None,
        "micro-batches of one worker in an update (default: 1, or from the global batch)",
        least=1,
        by_phase=True,
    )
    replicas: int | None = setting(
        None,
        "number of workers that batch_size and accumulation assume (default: the actual number)",
        least=1,
    )
    global_batch_size: int | None = shown(
        None, "examples of one update over all workers", least=1, by_phase=True
    )
    precision: str = shown(
        "fp32",
        "precision of matrix products: fp32, bf16 or fp16; weights stay in fp32",
        ("fp32", "bf16", "fp16"),
    )
    optimiser: str = named("optimiser", "lamb-nvidia", "name of the optimiser", common=True)
    clipping: str = setting(
        "usual",
        "clipping of gradients: none, per_micro_batch (of the micro-batch's own loss), "
        "per_micro_batch_divided (of its loss divided by the number of micro-batches), per_update "
        "(after the all-reduce), or usual: the optimiser's",
        ("usual", "none", "per_micro_batch", "per_micro_batch_divided", "per_update"),
    )
    max_grad_norm: float = setting(1.0, "global norm that gradients are clipped to", above=0)

    loss_over: str = setting(
        "micro_batch",
        "loss of an update: the mean of its micro-batches' means (micro_batch); the mean over all masked "
        "words of the update, or examples in fine-tuning (update); micro-batches weighed by sequences, as in "
        "ModernBERT's program, where padding of a packed row counts as one (sequences); the sum of the means "
        "(sum)",
        ("micro_batch", "update", "sequences", "sum"),
    )
    softmax_over_padding: bool = setting(
        False,
        "the softmax of masked words runs over the rows that pad the vocabulary to a multiple of 8 as well, "
        "as in NVIDIA's and Habana's programs",
    )
    clipping_norm: str = setting(
        "whole",
        "norm that clipping looks at: whole, of the gradients; word_rows, as in TensorFlow, where the "
        "gradient of each word that is looked up counts before those of equal words are added, unless the "
        "table is the output layer too; word_and_type_rows, where segment types are looked up as well",
        ("whole", "word_rows", "word_and_type_rows"),
    )

    @property
    def clipping_point(self) -> str:
        """The point at which gradients are clipped, by default the optimiser's usual one."""
        return str(find("optimiser", self.optimiser).clipping) if self.clipping == "usual" else self.clipping

    @property
    def clips_micro_batches(self) -> bool:
        """True if the gradient of each micro-batch is clipped on its own."""
        return self.clipping_point.startswith("per_micro_batch")

    def micro_batches(self, workers: int) -> tuple[int, int]:
        """(examples of a micro-batch, micro-batches of a worker in an update).

        A number that is not given follows from the global batch. SettingsError where that does not divide.
        """
        size, count, total = self.batch_size, self.accumulation, self.global_batch_size
        if total is None and self.replicas is not None:
            total = (size or _DEFAULT_BATCH_SIZE) * (count or 1) * self.replicas
            count = None
        if total is not None:
            size = size or max(1, total // (workers * (count or 1)))
            count = count or max(1, total // (workers * size))
            whole = workers * size * count
            factors = f"{workers} (workers) * {size} (batch_size) * {count} (accumulation) = {whole}"
            wanted = f"expected {factors}: a batch size that does not divide"
            check(total == whole, f"the global batch is {total}, {wanted}")
        return size or _DEFAULT_BATCH_SIZE, count or 1

    def examples(self, workers: int) -> int:
        """Examples of one update over all workers."""
        size, count = self.micro_batches(workers)
        return workers * size * count


@dataclass(frozen=True, kw_only=True)
class OptimiserSection(Section):
    """Settings of the optimiser. None: its preset's."""

    beta1: float | None = setting(
        None, "decay rate of the gradient's average (default: the optimiser's)", least=0, below=1
    )
    beta2: float | None = setting(
        None, "decay rate of the squared gradient's average (default: the optimiser's)", least=0, below=1
    )
    optimiser_epsilon: float | None = setting(
        None, "small number that is added to denominators (default: the optimiser's)", above=0
    )
    epsilon_in: str | None = setting(
        None,
        "place of that number: added to the root of the bias-corrected average of squares (corrected, as in "
        "PyTorch); to the root before its correction (uncorrected, as in transformers' adamw_hf and "
        "fairseq); or its square to the average (square) (default: the optimiser's)",
        ("corrected", "uncorrected", "square"),
    )
    summed_replicas: int = setting(
        1,
        "workers whose gradients the original adds up, where this trainer takes their mean: that number is "
        "divided by them, which makes the same updates",
        least=1,
    )
    weight_decay: float | None = shown(None, "weight decay (default: the optimiser's)", least=0)
    decay_skips: Sequence[str] | None = setting(
        None, "parts of the names of weights that do not decay: A,B or a JSON list (default: the optimiser's)"
    )
    use_debiasing: bool | None = setting(
        None, "bias correction, for lamb-graphcore (default: the optimiser's)"
    )
    momentum: float | None = setting(
        None, "momentum, for the optimiser momentum (default: the optimiser's)", least=0, below=1
    )

    def changed(self, preset: Preset) -> Preset:
        """The preset with the settings that are given."""
        beta1, beta2 = preset.betas
        settings: dict[str, Any] = {
            "betas": (
                beta1 if self.beta1 is None else self.beta1,
                beta2 if self.beta2 is None else self.beta2,
            ),
            "eps": (preset.eps if self.optimiser_epsilon is None else self.optimiser_epsilon)
            / self.summed_replicas,
            "epsilon_in": self.epsilon_in,
            "weight_decay": self.weight_decay,
            "decay_skips": None if self.decay_skips is None else tuple(self.decay_skips),
            "debias": self.use_debiasing,
            "momentum": self.momentum,
        }
        return replace(preset, **{name: value for name, value in settings.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class ScalingSection(Section):
    """The loss scale of fp16: fixed, or adjusted during training within bounds."""

    loss_scaling: float = setting(0.0, "fixed loss scale for fp16; 0: adjusted during training", least=0)
    init_loss_scale: float = setting(65536.0, "initial value of an adjusted loss scale", above=0)
    min_loss_scale: float = setting(1.0, "lower bound of an adjusted loss scale", above=0)
    max_loss_scale: float = setting(16777216.0, "upper bound of an adjusted loss scale", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        least, first, most = self.min_loss_scale, self.init_loss_scale, self.max_loss_scale
        wanted = f"expected min_loss_scale ({least:g}) to max_loss_scale ({most:g})"
        check(least <= first <= most, f"init_loss_scale is {first:g}, {wanted}")
