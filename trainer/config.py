"""The trainer's configuration: one frozen object with every key.

Types, ranges and other names of the keys are declared in ``schemas/trainer.json``, their defaults and
what they mean here. Order: these defaults, then a JSON file, then the command line (``trainer.flags``).
"""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from math import isfinite
from typing import Any

from bertdata.errors import SettingsError
from bertdata.storage import read_bytes
from schemas import load_schema

MODEL_KEYS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "initializer_range",
    "megatron_residual_connection",
    "scale_query_key",
    "deep_weight_init",
)


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


def key(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


def model_key(help: str) -> Any:
    return key(None, f"{help} (default: model_config's)")


def optimiser_key(help: str) -> Any:
    return key(None, f"{help} (default: the optimiser's own)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Every key of the trainer, checked; None stands for what the help says."""

    train_data: str | None = key(None, "dataset directory, or files, to train on")
    eval_data: str | None = key(None, "dataset directory, or file, to evaluate on")
    output_dir: str | None = key(None, "directory for checkpoints and logs")
    do_train: bool = key(True, "false: do not train")
    unverified: bool = key(False, "accept data without a manifest that fits, for other tools' files")
    generated_data: bool = key(False, "train on random examples made up on the host")
    max_seq_length: int | None = key(None, "ids in an example (default: the dataset's)")
    max_predictions_per_seq: int | None = key(
        None, "most masked positions in an example (default: the dataset's)"
    )
    lanes: int = key(8, "files read at once; the order of the examples depends on it")
    seed: int = key(42, "seed of weights, dropout and the order of the examples")

    device: str = key("cpu", "where to train: cpu, cuda, hpu, ipu or xla")
    collective: str | None = key(None, "how workers talk (default: found from the launcher)")
    precision: str = key("fp32", "arithmetic: fp32, bf16 or fp16; weights stay in fp32")
    loss_scaling: float = key(0.0, "fixed loss scale for fp16; 0: adapted while training")
    init_loss_scale: float = key(65536.0, "adapted loss scale at the start")
    min_loss_scale: float = key(1.0, "lower bound of the adapted loss scale")
    max_loss_scale: float = key(16777216.0, "upper bound of the adapted loss scale")
    compile: bool = key(False, "compile the model where the device can")
    compile_only: bool = key(False, "compile for the device and stop")
    deterministic: bool = key(False, "only deterministic kernels: slower, the same bits every time")
    profile: bool = key(False, "record a profile of a few steps in output_dir")

    model_config: str | None = key(None, "bert_config.json of the model; inline keys override it")
    vocab_size: int | None = key(None, "tokens (default: model_config's, else the dataset's)")
    hidden_size: int | None = model_key("width of the encoder")
    num_hidden_layers: int | None = model_key("layers of the encoder")
    num_attention_heads: int | None = model_key("attention heads a layer")
    intermediate_size: int | None = key(None, "width within a layer (default: four times hidden_size)")
    hidden_act: str | None = model_key("activation")
    hidden_dropout_prob: float | None = model_key("dropout of layers")
    attention_probs_dropout_prob: float | None = model_key("dropout of attention")
    max_position_embeddings: int | None = model_key("longest sequence the model can take")
    type_vocab_size: int | None = model_key("kinds of segments")
    initializer_range: float | None = model_key("standard deviation of the first weights")
    megatron_residual_connection: bool | None = model_key("layer norm before each block, as Megatron has it")
    scale_query_key: bool | None = model_key("scale queries and keys, not their product")
    deep_weight_init: bool | None = model_key("smaller first weights in deeper layers")

    steps: int = key(1000, "updates of the weights until the schedule ends")
    steps_this_run: int | None = key(None, "stop after this many updates (default: at steps)")
    batch_size: int | None = key(None, "examples of one micro-batch on one worker (default: 32)")
    accumulation: int | None = key(
        None, "micro-batches of one worker in an update (default: 1, or as the global batch asks)"
    )
    replicas: int | None = key(None, "workers that batch_size and accumulation are meant for (default: all)")
    global_batch_size: int | None = key(None, "examples of one update over all workers")

    optimiser: str = key("lamb-nvidia", "optimiser by name")
    beta1: float | None = optimiser_key("decay of the gradient's average")
    beta2: float | None = optimiser_key("decay of the squared gradient's average")
    optimiser_epsilon: float | None = optimiser_key("term that keeps divisions finite")
    weight_decay: float | None = optimiser_key("weight decay")
    use_debiasing: bool | None = optimiser_key("bias correction, for lamb-graphcore")
    momentum: float | None = optimiser_key("momentum, for momentum")
    clipping: str = key(
        "usual", "none, per_micro_batch, per_update (after all-reduce), or the optimiser's usual"
    )
    max_grad_norm: float = key(1.0, "global norm that gradients are clipped to")
    allreduce_post_accumulation: bool = key(True, "all-reduce once an update, not once a micro-batch")
    allreduce_post_accumulation_fp16: bool = key(False, "all-reduce in 16 bits")
    force_weight_sync: bool = key(False, "average the weights over the workers before each update")

    lr_schedule: str | None = key(None, "learning-rate schedule by name (default: the optimiser's usual)")
    base_learning_rate: float = key(1e-3, "learning rate after warm-up")
    warmup: int | float = key(0, "warm-up: an integer is updates, 0 <= x < 1 is a share of steps")
    start_warmup_step: int = key(0, "update at which warm-up starts, for mlperf; may be negative")
    power: float | None = key(None, "power of the decay (default: the schedule's)")
    decay_steps: int | None = key(None, "updates between two decays, for natural_exponential")
    decay_rate: float | None = key(None, "rate of the decay, for natural_exponential")
    lr_schedule_by_step: dict[str, float] | None = field(
        default=None, metadata={"help": 'learning rates by update, for custom: {"0": 1e-4, "100": 1e-5}'}
    )

    phase2: bool = key(False, "go on from phase 1's weights and moments; steps and schedule begin anew")
    phase1_end_step: int | None = key(None, "phase 1's checkpoint to go on from (default: its last)")
    start_from_ckpt: str | None = key(None, "checkpoint whose weights to start from")
    resume: bool = key(False, "go on from the last checkpoint in output_dir")
    resume_step: int | None = key(None, "update to resume at (default: the last checkpoint's)")
    checkpoint_every: int = key(1000, "updates between two checkpoints; 0: only at the end")
    keep_checkpoints: int = key(5, "most checkpoints to keep")

    eval_every: int | None = key(
        None, "updates between two evaluations; 0: only at the end (default: MLPerf's rule)"
    )
    eval_examples: int | None = key(None, "most examples to evaluate on (default: all)")
    eval_batch_size: int | None = key(None, "examples of one evaluation batch (default: batch_size)")
    target_accuracy: float | None = key(None, "masked_lm_accuracy that ends the run")

    log_every: int = key(10, "updates between two log lines")
    no_logs: bool = key(False, "write no log files")
    json_summary: str | None = key(None, "file for the dllogger lines (default: output_dir/dllogger.json)")
    no_progress_bar: bool = key(False, "plain lines on a terminal too")
    tensorboard: bool = key(False, "write TensorBoard's event files")
    wandb: bool = key(False, "report to Weights & Biases")
    wandb_offline: bool = key(False, "write Weights & Biases' files without the network")
    wandb_project: str = key("bertdata", "Weights & Biases' project")
    mllog: bool = key(False, "write MLPerf's log lines to output_dir/mllog.txt")
    device_options: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "keys of other trainers that only some devices know"}
    )

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
        inline = {name: value for name in MODEL_KEYS if (value := getattr(self, name)) is not None}
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


def device_option_properties() -> dict[str, dict[str, Any]]:
    """The schema of each key that only some devices, or none, know."""
    found: dict[str, dict[str, Any]] = properties()["device_options"]["properties"]
    return found


def check_names(given: Any, known: Any, where: str = "") -> None:
    """SettingsError for the first unknown name, with the nearest known one."""
    from difflib import get_close_matches

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
