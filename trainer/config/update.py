"""The update: settings of an optimiser, and the keys of batch sizes, precision, clipping and reduction."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, check, shown
from trainer.registry import CORE, find

OF_TENSORFLOW = ("LayerNorm", "layer_norm", "bias")
"""Parts of the names of weights that do not decay in programs after Google's."""

_DEFAULT_BATCH_SIZE = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Settings of an optimiser.

    decay_skips: parameters whose name contains one of these do not decay.
    trust: the parameters with a trust ratio: "all", "none", those that decay_skips does not match
    ("named"), those whose decay is not 0 ("decayed"), or all but biases ("weights").
    decays_by_share: weight decay is multiplied by the rate's share of the base rate, not by the rate.

    schedule, clipping: what the optimiser's authors use with it, where a configuration names none.
    """

    kind: str = "lamb"
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    weight_decay: float = 0.01
    decay_skips: tuple[str, ...] = ()
    trust: str = "all"
    debias: bool = True
    momentum: float = 0.0
    decays_by_share: bool = False
    schedule: str = "polynomial_decay"
    clipping: str = "none"

    def decays(self, name: str) -> bool:
        return not any(part in name for part in self.decay_skips)

    def trusts(self, name: str) -> bool:
        if self.trust in ("all", "none"):
            return self.trust == "all"
        if self.trust == "weights":
            return "bias" not in name
        return self.decays(name) and (self.trust == "named" or self.weight_decay != 0)


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
    optimiser: str = shown("lamb-nvidia", "name of the optimiser", tuple(CORE["preset"]))
    clipping: str = setting(
        "usual",
        "clipping of gradients: none, per_micro_batch (of the micro-batch's own loss), "
        "per_micro_batch_divided (of its loss divided by the number of micro-batches), per_update "
        "(after the all-reduce), or usual: the optimiser's",
        ("usual", "none", "per_micro_batch", "per_micro_batch_divided", "per_update"),
    )
    max_grad_norm: float = setting(1.0, "global norm that gradients are clipped to", above=0)

    @property
    def clipping_point(self) -> str:
        """The point at which gradients are clipped, by default the optimiser's usual one."""
        if self.clipping != "usual":
            return self.clipping
        usual: str = find("preset", self.optimiser).clipping
        return usual

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
