"""The trainer's configuration: one frozen object with every key.

Types, ranges, meanings and other names of the keys are declared in ``schemas/trainer.json``, their
defaults here. Order: these defaults, then a JSON file, then the command line (``trainer.flags``).
"""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from math import isfinite
from typing import Any

from bertdata.errors import SettingsError
from bertdata.storage import read_bytes
from schemas import load_schema

# What each optimiser's authors combine it with: schedule, and where gradients are clipped.
HABITS = {
    "lamb-mlperf": ("mlperf", "per_micro_batch"),
    "lamb-nvidia": ("nvidia-poly", "per_update"),
    "lamb-nvlamb": ("nvidia-poly", "per_update"),
    "lamb-habana-tf": ("habana-tf", "per_micro_batch"),
    "lamb-graphcore": ("polynomial_decay", "none"),
    "adamw-bert": ("mlperf", "per_micro_batch"),
    "adamw": ("polynomial_decay", "none"),
    "momentum": ("polynomial_decay", "none"),
    "sgd": ("polynomial_decay", "none"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Every key of the trainer, checked; None stands for what its description in the schema says."""

    train_data: str | None = None
    eval_data: str | None = None
    output_dir: str | None = None
    do_train: bool = True
    unverified: bool = False
    generated_data: bool = False
    max_seq_length: int | None = None
    max_predictions_per_seq: int | None = None
    lanes: int = 8
    seed: int = 42

    device: str = "cpu"
    collective: str | None = None
    precision: str = "fp32"
    loss_scaling: float = 0.0
    init_loss_scale: float = 65536.0
    min_loss_scale: float = 1.0
    max_loss_scale: float = 16777216.0
    compile: bool = False
    compile_only: bool = False
    deterministic: bool = False
    profile: bool = False

    model_config: str | None = None
    vocab_size: int | None = None
    hidden_size: int | None = None
    num_hidden_layers: int | None = None
    num_attention_heads: int | None = None
    intermediate_size: int | None = None
    hidden_act: str | None = None
    hidden_dropout_prob: float | None = None
    attention_probs_dropout_prob: float | None = None
    max_position_embeddings: int | None = None
    type_vocab_size: int | None = None
    initializer_range: float | None = None
    megatron_residual_connection: bool | None = None
    scale_query_key: bool | None = None
    deep_weight_init: bool | None = None

    steps: int = 1000
    steps_this_run: int | None = None
    batch_size: int | None = None
    accumulation: int | None = None
    replicas: int | None = None
    global_batch_size: int | None = None

    optimiser: str = "lamb-nvidia"
    beta1: float | None = None
    beta2: float | None = None
    optimiser_epsilon: float | None = None
    weight_decay: float | None = None
    use_debiasing: bool | None = None
    momentum: float | None = None
    clipping: str = "usual"
    max_grad_norm: float = 1.0
    allreduce_post_accumulation: bool = True
    allreduce_post_accumulation_fp16: bool = False
    force_weight_sync: bool = False

    lr_schedule: str | None = None
    base_learning_rate: float = 0.001
    warmup: int | float = 0
    start_warmup_step: int = 0
    power: float | None = None
    decay_steps: int | None = None
    decay_rate: float | None = None
    lr_schedule_by_step: dict[str, float] | None = None

    phase2: bool = False
    phase1_end_step: int | None = None
    start_from_ckpt: str | None = None
    resume: bool = False
    resume_step: int | None = None
    checkpoint_every: int = 1000
    keep_checkpoints: int = 5

    eval_every: int | None = None
    eval_examples: int | None = None
    eval_batch_size: int | None = None
    target_accuracy: float | None = None

    log_every: int = 10
    no_logs: bool = False
    json_summary: str | None = None
    no_progress_bar: bool = False
    tensorboard: bool = False
    wandb: bool = False
    wandb_offline: bool = False
    wandb_project: str = "bertdata"
    mllog: bool = False
    device_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_keys(self.as_json())
        self._check_lengths()
        self._check_batch()
        self._check_schedule()
        _check(
            self.min_loss_scale <= self.init_loss_scale <= self.max_loss_scale,
            f"init_loss_scale is {self.init_loss_scale:g}, expected min_loss_scale "
            f"({self.min_loss_scale:g}) to max_loss_scale ({self.max_loss_scale:g})",
        )
        _check(
            self.allreduce_post_accumulation or not self.allreduce_post_accumulation_fp16,
            "allreduce_post_accumulation_fp16 needs allreduce_post_accumulation",
        )

    def _check_lengths(self) -> None:
        _check(
            (self.max_predictions_per_seq or 0) <= (self.max_seq_length or 65535),
            f"max_predictions_per_seq is {self.max_predictions_per_seq}, "
            f"expected at most max_seq_length ({self.max_seq_length})",
        )
        width, heads = self.hidden_size, self.num_attention_heads
        _check(
            width is None or heads is None or width % heads == 0,
            f"hidden_size is {width}, expected a multiple of num_attention_heads ({heads})",
        )

    def _check_batch(self) -> None:
        if self.global_batch_size is not None:
            _divide(self.global_batch_size, (self.batch_size or 1) * (self.accumulation or 1), self)

    def _check_schedule(self) -> None:
        _check(
            isinstance(self.warmup, int) or self.warmup < 1,
            f"warmup is {self.warmup}, expected an integer (updates) or a share of steps, 0 <= x < 1",
        )
        _check(
            self.warmup_steps < self.steps,
            f"warmup is {self.warmup_steps} updates, expected fewer than steps ({self.steps}); "
            "a short trial run is had by steps_this_run",
        )
        needs = {"custom": ("lr_schedule_by_step",), "natural_exponential": ("decay_steps", "decay_rate")}
        for name in needs.get(self.schedule, ()):
            _check(getattr(self, name) is not None, f"lr_schedule {self.schedule} needs {name}")

    @property
    def schedule(self) -> str:
        """The name of the learning-rate schedule, the optimiser's usual one unless given."""
        return self.lr_schedule or HABITS[self.optimiser][0]

    @property
    def clipping_point(self) -> str:
        """Where gradients are clipped, the optimiser's usual place unless given."""
        return HABITS[self.optimiser][1] if self.clipping == "usual" else self.clipping

    @property
    def warmup_steps(self) -> int:
        """Warm-up in updates."""
        return self.warmup if isinstance(self.warmup, int) else int(self.warmup * self.steps + 1e-9)

    def learning_rate(self, workers: int) -> float:
        """The base learning rate; habana-tf's is meant for one worker and grows with their number."""
        return self.base_learning_rate * (workers if self.schedule == "habana-tf" else 1)

    def micro_batches(self, workers: int) -> tuple[int, int]:
        """(examples of a micro-batch, micro-batches of a worker in an update).

        What is not given follows from the global batch. SettingsError where that does not divide.
        """
        size, count, total = self.batch_size, self.accumulation, self.global_batch_size
        if total is None and self.replicas is not None:
            total, count = (size or 32) * (count or 1) * self.replicas, None
        if total is None:
            return size or 32, count or 1
        if size is None:
            count = count or 1
            size = _divide(total, workers * count, self, workers)
        elif count is None:
            count = _divide(total, workers * size, self, workers)
        _check(
            workers * size * count == total,
            f"global_batch_size is {total}, expected {workers} (workers) * {size} (batch_size) * {count} "
            f"(accumulation) = {workers * size * count}; leave one of the three out, or say none",
        )
        return size, count

    def update_examples(self, workers: int) -> int:
        """Examples of one update over all workers."""
        size, count = self.micro_batches(workers)
        return workers * size * count

    def evaluation_interval(self, workers: int) -> int:
        """Examples trained between two evaluations: eval_every's, else MLPerf's rule; 0: only at the end."""
        batch = self.update_examples(workers)
        if self.eval_every is not None:
            return self.eval_every * batch
        return int(0.05 * (230.23 * batch + 3_000_000) / 25_000) * 25_000

    def model_settings(self) -> dict[str, Any]:
        """The keys of the model: model_config's, overridden by the inline ones."""
        settings = read_json(self.model_config) if self.model_config else {}
        inline = {name: value for name in model_keys() if (value := getattr(self, name)) is not None}
        if "hidden_size" in inline:
            settings["intermediate_size"] = 4 * inline["hidden_size"]
        return settings | inline

    def without_meaning(self, device: str) -> list[str]:
        """The given keys that are accepted and do nothing on the device, for one line of the log."""
        options = device_option_properties()
        return sorted(name for name in self.device_options if device not in options[name]["devices"])

    def require(self, *names: str) -> None:
        """SettingsError for the first of the keys that is not given."""
        for name in names:
            _check(getattr(self, name) is not None, f"{name} is missing: give --{name.replace('_', '-')}")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def with_changes(self, **changes: Any) -> "Config":
        """A checked copy with the given keys changed."""
        check_names(changes, {item.name for item in fields(self)})
        return replace(self, **changes)


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SettingsError(message)


def _divide(total: int, part: int, config: Config, workers: int | None = None) -> int:
    """total / part; SettingsError where it does not divide."""
    given = [("workers", workers), ("batch_size", config.batch_size), ("accumulation", config.accumulation)]
    factors = " * ".join(f"{count} ({name})" for name, count in given if count is not None)
    found = "global_batch_size" if config.global_batch_size else "the batch of all replicas"
    _check(
        total % part == 0,
        f"{found} is {total}, a batch size that does not divide: expected a multiple of {factors}",
    )
    return total // part


@cache
def properties() -> dict[str, dict[str, Any]]:
    """The schema of each key."""
    found: dict[str, dict[str, Any]] = load_schema("trainer")["properties"]
    return found


@cache
def model_keys() -> tuple[str, ...]:
    """The keys that describe the model, as bert_config.json has them."""
    return tuple(name for name, item in properties().items() if item.get("model"))


def device_option_properties() -> dict[str, dict[str, Any]]:
    """The schema of each key that only some devices, or none, know."""
    found: dict[str, dict[str, Any]] = properties()["device_options"]["properties"]
    return found


def check_names(given: Any, known: Any, where: str = "") -> None:
    """SettingsError for the first unknown name, with the nearest known one."""
    for name in given:
        if name not in known:
            nearest = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
            hint = f"; the nearest known is {nearest[0]}" if nearest else ""
            raise SettingsError(f"{where}{name} is not a known key{hint}")


@cache
def _validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(load_schema("trainer"))


def check_keys(values: dict[str, Any], where: str = "") -> None:
    """SettingsError, one line, for the first key whose value has the wrong type or range."""
    errors = sorted(_validator().iter_errors(values), key=lambda error: list(map(str, error.absolute_path)))
    if errors:
        raise SettingsError(where + _fault(errors[0]))
    for name, value in values.items():
        if isinstance(value, float) and not isfinite(value):
            raise SettingsError(f"{where}{name} is {value}, expected a finite number")


_TYPES = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "a text",
    "object": "an object",
    "array": "a list",
}
_BOUNDS = {
    "minimum": "{} or more",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
}


def _fault(error: Any) -> str:
    name, rule = ".".join(map(str, error.absolute_path)), error.validator_value
    if error.validator == "enum":
        expected = "one of " + ", ".join(value or "none" for value in rule)
    elif error.validator == "type":
        kinds = [rule] if isinstance(rule, str) else rule
        expected = " or ".join(_TYPES[kind] for kind in kinds if kind != "null")
    elif error.validator in _BOUNDS:
        expected = _BOUNDS[error.validator].format(rule)
    else:
        return f"{name}: {error.message}"
    return f"{name} is {error.instance!r}, expected {expected}"


def read_json(path: str) -> dict[str, Any]:
    """The JSON object in the file; SettingsError names the file."""
    try:
        value = json.loads(read_bytes(path))
    except ValueError as error:
        raise SettingsError(f"{path}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: is not a JSON object")
    return value
