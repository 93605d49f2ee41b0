"""Keys and flags of the trainers that this one replaces, and what they mean here.

A name that merely differs is among a key's ``aliases`` in ``schemas/trainer.json``. Those below differ in
meaning too: NVIDIA's and Habana's ``run_pretraining`` (PyTorch), MLPerf's and Google's (TensorFlow), and
the JSON files of Graphcore.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from bertdata.errors import SettingsError
from trainer.config import check_names, device_option_properties, properties

# Any of these says that train_batch_size is MLPerf's: all workers together, one micro-step.
MLPERF_ONLY = {"input_file", "bert_config_file", "num_train_steps", "num_warmup_steps", "steps_per_update"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """Names and values as given, over those of the layer below."""

    given: Mapping[str, Any]
    below: Mapping[str, Any] = field(default_factory=dict)
    command_line: bool = False

    def find(self, *names: str, default: Any) -> Any:
        """The value of the first of the names that either layer gives."""
        values = (layer[name] for layer in (self.given, self.below) for name in names if name in layer)
        return next(values, default)


@dataclass(frozen=True, slots=True)
class Translation:
    """A foreign name: its JSON type, what it means in words, and the keys it stands for."""

    type: str
    meaning: str
    keys: Callable[[Any, Layer], dict[str, Any]]


def _micro_steps(name: str, key: str) -> Translation:
    """A count of micro-steps: divided by steps_per_update."""

    def keys(value: Any, layer: Layer) -> dict[str, Any]:
        size = layer.find("steps_per_update", default=1)
        if not all(isinstance(number, int) for number in (value, size)) or size < 1 or value % size:
            raise SettingsError(f"{name} is {value}, expected a multiple of steps_per_update ({size})")
        return {key: value // size}

    return Translation("integer", f"{key}, counted in micro-steps: divided by steps_per_update", keys)


def _train_batch_size(value: int, layer: Layer) -> dict[str, Any]:
    if MLPERF_ONLY & (set(layer.given) | set(layer.below)):
        count = layer.find("steps_per_update", default=1)
        return {"batch_size": None, "accumulation": count, "global_batch_size": value * count}
    names = ("accumulation", *properties()["accumulation"]["aliases"])
    count = layer.find(*names, default=1)
    if not isinstance(count, int) or count < 1 or value % count:
        raise SettingsError(
            f"train_batch_size is {value}, a batch size that does not divide: "
            f"expected a multiple of gradient_accumulation_steps ({count})"
        )
    return {"batch_size": value // count, "accumulation": count, "global_batch_size": None}


def _optimiser(american: bool) -> Callable[[Any, Layer], dict[str, Any]]:
    """Graphcore's lamb in files and under the British name; MLPerf's and Google's as flag --optimizer."""

    def keys(value: Any, layer: Layer) -> dict[str, Any]:
        flag = american and layer.command_line
        names = {"lamb": "lamb-mlperf", "adamw": "adamw-bert"} if flag else {"lamb": "lamb-graphcore"}
        return {"optimiser": names.get(value, value)}

    return keys


def _task(value: Any, _: Layer) -> dict[str, Any]:
    if value != "pretraining":
        raise SettingsError(
            f"task is {value!r}, expected 'pretraining'; other tasks: python -m trainer finetune"
        )
    return {}


def _when(type: str, meaning: str, **keys: Any) -> Translation:
    """A switch that sets the keys when it is on."""
    return Translation(type, meaning, lambda value, _: keys if value else {})


def _unless_negative(key: str) -> Translation:
    return Translation(
        "integer", f"{key}; below 0: not given", lambda value, _: {key: value if value >= 0 else None}
    )


TRANSLATIONS = {
    "train_batch_size": Translation(
        "integer",
        "NVIDIA: examples of one worker in an update, gradient_accumulation_steps micro-batches together; "
        "MLPerf: examples of all workers in a micro-step",
        _train_batch_size,
    ),
    "steps_per_update": Translation("integer", "accumulation", lambda value, _: {"accumulation": value}),
    "num_train_steps": _micro_steps("num_train_steps", "steps"),
    "num_warmup_steps": _micro_steps("num_warmup_steps", "warmup"),
    "start_warmup_step": _micro_steps("start_warmup_step", "start_warmup_step"),
    "save_checkpoints_steps": _micro_steps("save_checkpoints_steps", "checkpoint_every"),
    "max_eval_steps": Translation(
        "integer",
        "eval_examples, counted in evaluation batches",
        lambda value, layer: {"eval_examples": value * layer.find("eval_batch_size", default=8)},
    ),
    "log_epsilon": Translation(
        "number", "optimiser_epsilon as a power of ten", lambda value, _: {"optimiser_epsilon": 10.0**value}
    ),
    "clip_by_global_norm_after_gradient_allreduce": Translation(
        "boolean",
        "clipping per_update, else per_micro_batch",
        lambda value, _: {"clipping": "per_update" if value else "per_micro_batch"},
    ),
    "optimizer": Translation(
        "string", "optimiser; on the command line lamb is lamb-mlperf, adamw adamw-bert", _optimiser(True)
    ),
    "optimiser": Translation("string", "lamb is lamb-graphcore", _optimiser(False)),
    "precision": Translation(
        "string",
        "16 is fp16, 32 is fp32",
        lambda value, _: {"precision": {"16": "fp16", "32": "fp32"}.get(str(value), value)},
    ),
    "fp16": _when("boolean", "precision fp16", precision="fp16"),
    "amp": _when("boolean", "precision fp16", precision="fp16"),
    "use_autocast": _when("boolean", "precision bf16", precision="bf16"),
    "hmp": _when("boolean", "precision bf16", precision="bf16"),
    "use_habana": _when("boolean", "device hpu", device="hpu"),
    "use_tpu": _when("boolean", "device xla", device="xla"),
    "no_cuda": _when("boolean", "device cpu", device="cpu"),
    "num_gpus": _when("integer", "device cuda, if more than 0", device="cuda"),
    "skip_checkpoint": _when("boolean", "checkpoint_every 0", checkpoint_every=0),
    "init_checkpoint": Translation(
        "string", "start_from_ckpt; empty: none", lambda value, _: {"start_from_ckpt": value or None}
    ),
    "restore_dir": _when("string", "resume, if not empty", resume=True),
    "resume_step": _unless_negative("resume_step"),
    "steps_this_run": _unless_negative("steps_this_run"),
    "task": Translation("string", "pretraining", _task),
}


@cache
def renamed() -> dict[str, str]:
    """The key that each alias stands for."""
    return {alias: name for name, item in properties().items() for alias in item.get("aliases", ())}


@cache
def known_names() -> frozenset[str]:
    """Every name that a file or a command line may give."""
    return frozenset((*properties(), *renamed(), *TRANSLATIONS, *device_option_properties()))


def types_of(name: str) -> list[str]:
    """The JSON types that the name's value may have."""
    if name in TRANSLATIONS and name not in properties():
        return [TRANSLATIONS[name].type]
    item = device_option_properties().get(name) or properties()[renamed().get(name, name)]
    kinds = item.get("type", ["string", "null"] if None in item.get("enum", ()) else "string")
    return [kinds] if isinstance(kinds, str) else kinds


def translate(layer: Layer, where: str = "") -> dict[str, Any]:
    """The layer's values by the trainer's own keys; SettingsError for an unknown or contradictory name."""
    check_names(layer.given, known_names(), where)
    layer = replace(layer, given={name: _typed(name, value, where) for name, value in layer.given.items()})
    found: dict[str, Any] = {}
    source: dict[str, str] = {}
    options: dict[str, Any] = {}
    for name, value in layer.given.items():
        if name in device_option_properties():
            options[name] = value
            continue
        if name == "device_options" and isinstance(value, dict):
            check_names(value, device_option_properties(), f"{where}device_options: ")
            options |= value
            continue
        for key, meant in _keys(name, value, layer, where).items():
            if key in found and found[key] != meant:
                raise SettingsError(f"{where}{source[key]} and {name} contradict each other: both set {key}")
            found[key], source[key] = meant, name
    return found | ({"device_options": options} if options else {})


def _typed(name: str, value: Any, where: str) -> Any:
    """The value, a whole number as an integer; SettingsError for a wrong type of what is to be translated."""
    if isinstance(value, float) and "integer" in types_of(name) and value.is_integer():
        value = int(value)
    if name in TRANSLATIONS and value is not None:
        wanted: dict[str, Any] = {
            "integer": int,
            "number": (int, float),
            "boolean": bool,
            "string": (str, int),
        }
        kind = TRANSLATIONS[name].type
        if not isinstance(value, wanted[kind]) or (kind != "boolean" and isinstance(value, bool)):
            raise SettingsError(f"{where}{name} is {value!r}, expected the type {kind}")
    return value


def _keys(name: str, value: Any, layer: Layer, where: str) -> dict[str, Any]:
    if name not in TRANSLATIONS or value is None:
        own = renamed().get(name, name)
        return {own: value} if own in properties() else {}
    try:
        return TRANSLATIONS[name].keys(value, layer)
    except SettingsError as error:
        raise SettingsError(f"{where}{error}") from None
