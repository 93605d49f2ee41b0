"""Configuration sections of an update: batch size, precision, clipping, the optimiser and the loss scale."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bertdata.config.declared import setting
from bertdata.config.settings import require
from trainer.config.schedules.form import Preset
from trainer.config.sections.section import Section, declare_common_key, declare_plugin_key
from trainer.plugins import find

_DEFAULT_BATCH_SIZE = 32

FP8_RECIPES = ("tensorwise", "rowwise", "rowwise_with_gw_hp")
"""Ways to scale the operands of a matrix product in FP8, by the names that the library torchao gives them."""

FP8_MULTIPLE = 16
"""Number of which both sides of every matrix that is multiplied in FP8 are multiples, as GPUs require."""


@dataclass(frozen=True, kw_only=True)
class UpdateSection(Section):
    """Keys about how an update of the weights is computed.

    None means the optimiser's usual value, unless the help text says otherwise.
    """

    batch_size: int | None = declare_common_key(
        None, "examples in a micro-batch on each worker (default: 32)", least=1, by_phase=True
    )
    accumulation: int | None = declare_common_key(
        None,
        "micro-batches per update on each worker (default: 1, or computed from global_batch_size)",
        least=1,
        by_phase=True,
    )
    replicas: int | None = setting(
        None,
        "number of workers that batch_size and accumulation are meant for (default: the actual number)",
        least=1,
    )
    global_batch_size: int | None = declare_common_key(
        None, "examples in an update, over all workers", least=1, by_phase=True
    )
    precision: str = declare_common_key(
        "fp32",
        "precision of matrix products: fp32, bf16, fp16 or fp8 (8 bits in the linear layers of all encoder "
        "layers but the first and the last, bf16 elsewhere); weights are stored in fp32",
        ("fp32", "bf16", "fp16", "fp8"),
    )
    fp8_recipe: str = setting(
        "tensorwise",
        "how precision fp8 scales the operands of a product: tensorwise (one scale for each matrix, the "
        "fastest), rowwise (one scale for each row), or rowwise_with_gw_hp (rowwise, with the gradients of "
        "weights computed in bf16, the most exact)",
        FP8_RECIPES,
    )
    fp8_emulation: bool = setting(
        False,
        "with precision fp8: round to 8 bits as a GPU does, but multiply in fp32; slow, to see on any "
        "processor or GPU what fp8 does to a training",
    )
    optimiser: str = declare_plugin_key(
        "optimiser", "lamb-nvidia", "name of the optimiser", common=True, other_names=["optimizer"]
    )
    clipping: str = setting(
        "usual",
        "when gradients are clipped: none (never), per_micro_batch, per_micro_batch_divided (after division "
        "by the number of micro-batches), per_update (after the average over the workers), or usual (as the "
        "optimiser's original program does)",
        ("usual", "none", "per_micro_batch", "per_micro_batch_divided", "per_update"),
    )
    max_grad_norm: float = setting(1.0, "largest global norm of the gradients after clipping", above=0)

    loss_over: str = setting(
        "micro_batch",
        "how the losses of micro-batches make the loss of an update: micro_batch (mean of the "
        "micro-batches' mean losses); update (mean over all masked words of the update, or over all "
        "examples in fine-tuning); sequences (mean weighted by the number of sequences, where the padding "
        "of a packed row counts as a sequence, as in ModernBERT's program); sum (sum of the "
        "micro-batches' mean losses)",
        ("micro_batch", "update", "sequences", "sum"),
    )
    softmax_over_padding: bool = setting(
        False,
        "let the softmax of masked words include the rows that pad the vocabulary to a multiple of 8, as "
        "NVIDIA's and Habana's programs do",
    )
    clipping_norm: str = setting(
        "whole",
        "norm that clipping uses: whole (of the summed gradients); word_rows (as in TensorFlow: the word "
        "embedding's gradient of each looked-up position counts by itself, before positions with the same "
        "word are summed, unless the embedding is also the output layer); word_and_type_rows (as in "
        "word_rows, for the embedding of segment types too)",
        ("whole", "word_rows", "word_and_type_rows"),
    )

    @property
    def token_multiple(self) -> int:
        """Number of which the number of tokens of each micro-batch must be a multiple."""
        return FP8_MULTIPLE if self.precision == "fp8" else 1

    def list_idle_keys(self) -> list[str]:
        """Return the keys that have no effect without precision fp8."""
        return [] if self.precision == "fp8" else ["fp8_recipe", "fp8_emulation"]

    @property
    def clipping_point(self) -> str:
        """The point in an update at which gradients are clipped, such as "per_micro_batch". If the key
        clipping has the value "usual", it is the optimiser's usual point.
        """
        return str(find("optimiser", self.optimiser).clipping) if self.clipping == "usual" else self.clipping

    @property
    def clips_micro_batches(self) -> bool:
        """True if the gradient of each micro-batch is clipped separately."""
        return self.clipping_point.startswith("per_micro_batch")

    def micro_batches(self, workers: int) -> tuple[int, int]:
        """Return (examples in a micro-batch, micro-batches in an update) for each worker.

        A number that is not set is computed from global_batch_size. SettingsError if this would give a
        fraction. For example, two micro-batches are needed if batch_size is set to 8:

            global_batch_size 64, 4 workers, batch_size 8 -> (8, 2)
            global_batch_size 64, 4 workers -> (16, 1)

        workers: number of workers in this run.
        """
        size, count, total = self.batch_size, self.accumulation, self.global_batch_size
        # The imitated program ran on `replicas` workers. This run may have another number of workers. To keep
        # the same global batch, the number of micro-batches is computed from it.
        if total is None and self.replicas is not None:
            total = (size or _DEFAULT_BATCH_SIZE) * (count or 1) * self.replicas
            count = None
        if total is not None:
            size = size or max(1, total // (workers * (count or 1)))
            count = count or max(1, total // (workers * size))
            whole = workers * size * count
            require(
                total == whole,
                f"the global batch is {total}, expected {workers} (workers) * {size} (batch_size) * {count} "
                f"(accumulation) = {whole}: a batch size that does not divide",
            )
        return size or _DEFAULT_BATCH_SIZE, count or 1

    def examples(self, workers: int) -> int:
        """Return the number of examples in an update, over all workers."""
        size, count = self.micro_batches(workers)
        return workers * size * count


@dataclass(frozen=True, kw_only=True)
class OptimiserSection(Section):
    """Keys that change an optimiser's preset. None keeps the preset's value."""

    beta1: float | None = setting(
        None, "decay rate of the running mean of gradients (default: the optimiser's)", least=0, below=1
    )
    beta2: float | None = setting(
        None, "decay rate of the running mean of squares (default: the optimiser's)", least=0, below=1
    )
    optimiser_epsilon: float | None = setting(
        None,
        "small number added to denominators (default: the optimiser's)",
        above=0,
        other_names=["optimizer_epsilon"],
    )
    epsilon_in: str | None = setting(
        None,
        "where optimiser_epsilon is added: corrected (to the root of the bias-corrected mean of squares, as "
        "in PyTorch), uncorrected (to the root before bias correction, as in transformers' adamw_hf and "
        "fairseq) or square (its square to the mean of squares) (default: the optimiser's)",
        ("corrected", "uncorrected", "square"),
    )
    summed_replicas: int = setting(
        1,
        "number of workers whose gradients the original program sums; this trainer averages them, and "
        "divides optimiser_epsilon by this number to make the same updates",
        least=1,
    )
    weight_decay: float | None = declare_common_key(None, "weight decay (default: the optimiser's)", least=0)
    decay_skips: Sequence[str] | None = setting(
        None,
        "no weight decay for weights whose name contains one of these: A,B or a JSON list (default: the "
        "optimiser's)",
    )
    use_debiasing: bool | None = setting(
        None, "correct the bias of the running means, for lamb-graphcore (default: the optimiser's)"
    )
    momentum: float | None = setting(
        None, "momentum, for optimiser momentum (default: the optimiser's)", least=0, below=1
    )

    def changed(self, preset: Preset) -> Preset:
        """Return the optimiser's preset with the values of the keys that are set."""
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
    """Keys about the loss scale of fp16: fixed, or adjusted during training within bounds."""

    loss_scaling: float = setting(0.0, "fixed loss scale for fp16; 0: adjust it during training", least=0)
    init_loss_scale: float = setting(65536.0, "initial value of an adjusted loss scale", above=0)
    min_loss_scale: float = setting(1.0, "lower bound of an adjusted loss scale", above=0)
    max_loss_scale: float = setting(16777216.0, "upper bound of an adjusted loss scale", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        least, first, most = self.min_loss_scale, self.init_loss_scale, self.max_loss_scale
        require(least <= most, f"min_loss_scale is {least:g}, expected at most max_loss_scale ({most:g})")
        require(
            least <= first <= most,
            f"init_loss_scale is {first:g}, expected min_loss_scale ({least:g}) to max_loss_scale ({most:g})",
        )
