"""The trainer's configuration: one frozen object with all keys.

Types, ranges, meanings, defaults and aliases of the keys are declared in ``schemas/trainer.json``.
Precedence: command line, JSON file (both read by ``trainer.config.flags``), defaults.
"""

from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from types import SimpleNamespace
from typing import Any, NoReturn

from bertdata.config.value_check import check_names, check_values, read_object
from bertdata.errors import SettingsError
from schemas import load_schema


class Config(SimpleNamespace):
    """All keys as attributes, checked; the meaning of None is in the schema's description of the key."""

    def __init__(self, **given: Any) -> None:
        check_names(given, properties())
        defaults = {name: item.get("default") for name, item in properties().items()}
        super().__init__(**deepcopy(defaults | given))
        check_values(vars(self), properties())
        self._check_together()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} cannot be set: a configuration is immutable")

    def _check_together(self) -> None:
        """SettingsError for values that are valid alone but not together."""
        wanted = "expected an integer (updates) or a share of steps, 0 <= x < 1"
        _check(isinstance(self.warmup, int) or self.warmup < 1, f"warmup is {self.warmup}, {wanted}")
        wanted = f"expected fewer than steps ({self.steps}); for a short trial run give steps_this_run"
        _check(self.warmup_steps < self.steps, f"warmup is {self.warmup_steps} updates, {wanted}")
        for name in properties()["lr_schedule"]["needs"].get(self.schedule, ()):
            _check(getattr(self, name) is not None, f"lr_schedule {self.schedule} needs {name}")
        least, first, most = self.min_loss_scale, self.init_loss_scale, self.max_loss_scale
        wanted = f"expected min_loss_scale ({least:g}) to max_loss_scale ({most:g})"
        _check(least <= first <= most, f"init_loss_scale is {first:g}, {wanted}")
        post, halves = self.allreduce_post_accumulation, self.allreduce_post_accumulation_fp16
        _check(post or not halves, "allreduce_post_accumulation_fp16 needs allreduce_post_accumulation")

    @property
    def schedule(self) -> str:
        """The name of the learning-rate schedule; by default the optimiser's usual one."""
        return str(self.lr_schedule or self._usual("schedule"))

    @property
    def clipping_point(self) -> str:
        """The point at which gradients are clipped; by default the optimiser's usual one."""
        return self._usual("clipping") if self.clipping == "usual" else str(self.clipping)

    def _usual(self, kind: str) -> str:
        """The schedule or clipping that the optimiser's authors use with it."""
        return str(properties()["optimiser"]["habits"][self.optimiser][kind])

    @property
    def warmup_steps(self) -> int:
        """Warm-up in updates."""
        return self.warmup if isinstance(self.warmup, int) else int(self.warmup * self.steps + 1e-9)

    def learning_rate(self, workers: int) -> float:
        """The base learning rate; habana-tf's is that of one worker, multiplied by their number."""
        return float(self.base_learning_rate * (workers if self.schedule == "habana-tf" else 1))

    def micro_batches(self, workers: int) -> tuple[int, int]:
        """(examples of a micro-batch, micro-batches of a worker in an update).

        A number that is not given follows from the global batch. SettingsError where that does not divide.
        """
        size, count, total = self.batch_size, self.accumulation, self.global_batch_size
        if total is None and self.replicas is not None:
            total = (size or 32) * (count or 1) * self.replicas
            count = None
        if total is not None:
            size = size or max(1, total // (workers * (count or 1)))
            count = count or max(1, total // (workers * size))
            whole = workers * size * count
            factors = f"{workers} (workers) * {size} (batch_size) * {count} (accumulation) = {whole}"
            wanted = f"expected {factors}: a batch size that does not divide"
            _check(total == whole, f"the global batch is {total}, {wanted}")
        return size or 32, count or 1

    def update_examples(self, workers: int) -> int:
        """Examples of one update over all workers."""
        size, count = self.micro_batches(workers)
        return workers * size * count

    def evaluation_interval(self, workers: int) -> int:
        """Examples trained between two evaluations, by eval_every or MLPerf's rule; 0: only at the end."""
        batch = self.update_examples(workers)
        if self.eval_every is not None:
            return int(self.eval_every * batch)
        return int(0.05 * (230.23 * batch + 3_000_000) / 25_000) * 25_000

    def model_settings(self) -> dict[str, Any]:
        """The keys of the model: those of the model_config file, overridden by inline keys."""
        settings = read_object(self.model_config) if self.model_config else {}
        inline = {name: value for name in model_keys() if (value := getattr(self, name)) is not None}
        if "hidden_size" in inline:
            settings["intermediate_size"] = 4 * inline["hidden_size"]
        return settings | inline

    def keys_without_effect(self, device: str, idle_there: Iterable[str] = ()) -> list[str]:
        """The given keys that have no effect on the device, for one line of the log.

        idle_there: keys that have an effect on other devices only.
        """
        options = device_option_properties()
        idle = [name for name in self.device_options if device not in options[name]["devices"]]
        idle += [name for name in idle_there if getattr(self, name) != properties()[name].get("default")]
        return sorted(idle + ["train_data"] * bool(self.generated_data and self.train_data))

    def require(self, *names: str) -> None:
        """SettingsError for the first of the keys that is not given."""
        for name in names:
            _check(getattr(self, name) is not None, f"{name} is missing: give --{name.replace('_', '-')}")

    def as_json(self) -> dict[str, Any]:
        return deepcopy(vars(self))


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SettingsError(message)


@cache
def properties() -> dict[str, dict[str, Any]]:
    """The schema of each key."""
    return dict(load_schema("trainer")["properties"])


def model_keys() -> list[str]:
    """The keys that describe the model, with bert_config.json's names."""
    return [name for name, item in properties().items() if item.get("model")]


def device_option_properties() -> dict[str, dict[str, Any]]:
    """The schema of each key that has an effect on some devices only, or on none."""
    return dict(properties()["device_options"]["properties"])
