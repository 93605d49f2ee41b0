"""The trainer's configuration: one frozen object with every key.

Types, ranges, meanings, defaults and other names of the keys are declared in ``schemas/trainer.json``.
Order: these defaults, then a JSON file, then the command line (``trainer.flags``).
"""

from copy import deepcopy
from functools import cache
from types import SimpleNamespace
from typing import Any, NoReturn

from bertdata.checking import check_names, check_values, read_object
from bertdata.errors import SettingsError
from schemas import load_schema


class Config(SimpleNamespace):
    """Every key of the trainer as an attribute, checked; None stands for what the schema says of the key."""

    def __init__(self, **given: Any) -> None:
        check_names(given, properties())
        defaults = {name: item.get("default") for name, item in properties().items()}
        super().__init__(**deepcopy(defaults | given))
        check_values(vars(self), properties())
        self._check_together()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} cannot be set: a configuration never changes")

    def _check_together(self) -> None:
        """SettingsError for keys that are right each and do not go together."""
        masks, length, steps = self.max_predictions_per_seq, self.max_seq_length, self.steps
        wanted = f"expected at most max_seq_length ({length})"
        _check((masks or 0) <= (length or 65535), f"max_predictions_per_seq is {masks}, {wanted}")
        width, heads = self.hidden_size, self.num_attention_heads
        wanted = f"expected a multiple of num_attention_heads ({heads})"
        _check(not (width and heads and width % heads), f"hidden_size is {width}, {wanted}")
        if self.global_batch_size is not None:
            self._divide(self.global_batch_size, (self.batch_size or 1) * (self.accumulation or 1))
        wanted = "expected an integer (updates) or a share of steps, 0 <= x < 1"
        _check(isinstance(self.warmup, int) or self.warmup < 1, f"warmup is {self.warmup}, {wanted}")
        wanted = f"expected fewer than steps ({steps}); a short trial run is had by steps_this_run"
        _check(self.warmup_steps < steps, f"warmup is {self.warmup_steps} updates, {wanted}")
        for name in properties()["lr_schedule"]["needs"].get(self.schedule, ()):
            _check(getattr(self, name) is not None, f"lr_schedule {self.schedule} needs {name}")
        least, first, most = self.min_loss_scale, self.init_loss_scale, self.max_loss_scale
        wanted = f"expected min_loss_scale ({least:g}) to max_loss_scale ({most:g})"
        _check(least <= first <= most, f"init_loss_scale is {first:g}, {wanted}")
        post, halves = self.allreduce_post_accumulation, self.allreduce_post_accumulation_fp16
        _check(post or not halves, "allreduce_post_accumulation_fp16 needs allreduce_post_accumulation")

    @property
    def schedule(self) -> str:
        """The name of the learning-rate schedule, the optimiser's usual one unless given."""
        return str(self.lr_schedule or self._habits["schedule"])

    @property
    def clipping_point(self) -> str:
        """Where gradients are clipped, the optimiser's usual place unless given."""
        return str(self._habits["clipping"] if self.clipping == "usual" else self.clipping)

    @property
    def _habits(self) -> dict[str, str]:
        """What the optimiser's authors combine it with."""
        found: dict[str, str] = properties()["optimiser"]["habits"][self.optimiser]
        return found

    @property
    def warmup_steps(self) -> int:
        """Warm-up in updates."""
        return self.warmup if isinstance(self.warmup, int) else int(self.warmup * self.steps + 1e-9)

    def learning_rate(self, workers: int) -> float:
        """The base learning rate; habana-tf's is meant for one worker and grows with their number."""
        return float(self.base_learning_rate * (workers if self.schedule == "habana-tf" else 1))

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
            size = self._divide(total, workers * count, workers)
        elif count is None:
            count = self._divide(total, workers * size, workers)
        _check(
            workers * size * count == total,
            f"global_batch_size is {total}, expected {workers} (workers) * {size} (batch_size) * {count} "
            f"(accumulation) = {workers * size * count}; leave one of the three out, or say none",
        )
        return size, count

    def _divide(self, total: int, part: int, workers: int | None = None) -> int:
        """total / part; SettingsError where it does not divide."""
        given = {"workers": workers, "batch_size": self.batch_size, "accumulation": self.accumulation}
        factors = " * ".join(f"{count} ({name})" for name, count in given.items() if count is not None)
        found = "global_batch_size" if self.global_batch_size else "the batch of all replicas"
        wanted = f"a batch size that does not divide: expected a multiple of {factors}"
        _check(total % part == 0, f"{found} is {total}, {wanted}")
        return total // part

    def update_examples(self, workers: int) -> int:
        """Examples of one update over all workers."""
        size, count = self.micro_batches(workers)
        return workers * size * count

    def evaluation_interval(self, workers: int) -> int:
        """Examples trained between two evaluations: eval_every's, else MLPerf's rule; 0: only at the end."""
        batch = self.update_examples(workers)
        if self.eval_every is not None:
            return int(self.eval_every * batch)
        return int(0.05 * (230.23 * batch + 3_000_000) / 25_000) * 25_000

    def model_settings(self) -> dict[str, Any]:
        """The keys of the model: model_config's, overridden by the inline ones."""
        settings = read_object(self.model_config) if self.model_config else {}
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
        return deepcopy(vars(self))

    def with_changes(self, **changes: Any) -> "Config":
        """A checked copy with the given keys changed."""
        return Config(**vars(self) | changes)


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SettingsError(message)


@cache
def properties() -> dict[str, dict[str, Any]]:
    """The schema of each key."""
    found: dict[str, dict[str, Any]] = load_schema("trainer")["properties"]
    return found


def model_keys() -> list[str]:
    """The keys that describe the model, as bert_config.json has them."""
    return [name for name, item in properties().items() if item.get("model")]


def device_option_properties() -> dict[str, dict[str, Any]]:
    """The schema of each key that only some devices, or none, know."""
    found: dict[str, dict[str, Any]] = properties()["device_options"]["properties"]
    return found
