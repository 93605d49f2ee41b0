"""Makes docs/configuration.md and the pictures of the learning-rate schedules from the code in
trainer/config/.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.config.declared import MAX_FLOAT, MAX_INTEGER
from bertdata.config.value_check import list_types
from bertdata.loaders.modernbert.settings import ModernBertSettings, TokenWarmup
from bertdata.loaders.modernbert.warmup import BatchWarmup
from trainer.config.files import find_shipped_configs
from trainer.config.flags import make_configs
from trainer.config.help import TITLES
from trainer.config.schedules.form import Schedule, Warmup
from trainer.config.settings import SECTIONS, Config, get_device_key_schemas, get_key_schemas, get_other_names
from trainer.plugins import find, list_names
from trainer.run.course import UpdateCourse, iterate_stretches

SOURCES = {
    "bert_large_phase1_h100": "NVIDIA's, for a GPU of 80 GB",
    "bert_large_phase2_h100": "NVIDIA's, for a GPU of 80 GB",
    "graphcore_base_128": "Graphcore",
    "graphcore_base_384": "Graphcore",
    "graphcore_large_128": "Graphcore",
    "graphcore_large_384": "Graphcore",
    "graphcore_tiny_128_lamb": "Graphcore's test",
    "habana_large": "Habana, both phases",
    "habana_large_phase1": "Habana",
    "habana_large_phase2": "Habana",
    "mlperf": "MLPerf, a record run",
    "modernbert_base": "ModernBERT, paper and program, both phases",
    "modernbert_large": "ModernBERT, paper and program, both phases",
    "modernbert_small": "this project, after Ettin and ModernBERT",
    "mrpc_base": "Google, NVIDIA: [fine-tuning](finetuning.md)",
    "mrpc_large": "Google, NVIDIA: [fine-tuning](finetuning.md)",
    "nvidia_large_phase1": "NVIDIA, LAMB",
    "nvidia_large_phase2": "NVIDIA, LAMB",
    "rannc_4.9b": "RaNNC's model, Google's update: [splitting](splitting.md)",
    "roberta_base": "fairseq",
    "roberta_small": "this project, after fairseq",
    "squad_base": "Google, NVIDIA: [fine-tuning](finetuning.md)",
    "squad_large": "Google, NVIDIA: [fine-tuning](finetuning.md)",
    "tiny": "this project",
}
"""For each configuration that comes with the trainer, the publication or program that it is from."""

DRAWN = {
    "trapezoidal": {"lr_decay": 25},
    "natural_exponential": {"decay_steps": 18, "decay_rate": 0.5},
    "custom": {"lr_schedule_by_step": {"0": 0.3, "20": 1.0, "60": 0.4}},
}
"""The schedules of which pictures are drawn, with values for the keys they require.

All other keys have their defaults.
"""

_KINDS = {
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "string": "text",
    "array": "list",
    "object": "object",
}

_WIDTH, _HEIGHT, _EDGE, _STEPS = 120, 48, 4, 100


def make_page() -> str:
    """Return the text of docs/configuration.md."""
    parts = [_HEAD, _make_shipped_table(), _KEYS]
    keys = get_key_schemas()
    for section in SECTIONS:
        title = TITLES[section]
        names = [name for name, item in keys.items() if item.get("section") == section]
        parts.append(f"### {title[:1].upper()}{title[1:]}\n\n{_make_key_table(names, keys)}")
    options = get_device_key_schemas()
    for devices in sorted({tuple(item["devices"]) for item in options.values()}):
        names = [name for name, item in options.items() if tuple(item["devices"]) == devices]
        parts.append(f"### Device {' or '.join(devices)}\n\n{_make_key_table(names, options)}")
    others = "".join(f"`{name}` is `{key}`. " for name, key in get_other_names().items()).strip()
    return "\n".join([*parts, f"### Other spellings and older names\n\n{others}\n"])


_HEAD = """\
# Configuration

This page lists all keys of the trainer's configuration. [training.md](training.md) explains how to use them.
`python -m tools.program_pages` makes the page from the declarations in `trainer/config/`, which also give
`--help-all` and [`schemas/trainer.json`](../schemas/trainer.json).

## Configurations that come with the trainer

`--config NAME` uses one of them. Flags override its keys. The examples of an update are counted over all
workers, or per worker if the configuration does not fix the total.
"""

_KEYS = """\
## Keys

Each key is a flag (`max_seq_length` is `--max-seq-length`) and a key of the JSON file for `--config`. A key
marked with * can have two values, for phase 1 and phase 2. It also exists with `_phase1` or `_phase2`
appended. The default bounds and initial value of the loss scale, and the default bounds of micro-batches,
give way to those that are given: with `--max-loss-scale 100` the initial value is 100.
"""


def _make_shipped_table() -> str:
    """Return the Markdown table of the configurations that come with the trainer."""
    rows = "".join(_make_shipped_row(name) for name in find_shipped_configs())
    columns = ("configuration", "source", "examples of an update", "updates", "learning rate, warm-up")
    heading = " | ".join([*columns, "data", "device"])
    return f"| {heading} |\n|{'---|' * 7}\n{rows}"


def _make_shipped_row(name: str) -> str:
    """Return the table row of a configuration. If its phases have different values, both are shown."""
    phases = make_configs(["--config", name])
    cells = [f"`{name}`", SOURCES[name]]
    for describe in (_describe_examples, _describe_updates, _describe_rate, _describe_data, _describe_device):
        cells.append(", then ".join(dict.fromkeys(map(describe, phases))))
    return f"| {' | '.join(cells)} |\n"


def _describe_examples(config: Config) -> str:
    """Return the text for the number of examples of an update."""
    update = config.update
    fixed = update.global_batch_size is not None or update.replicas is not None
    return f"{update.examples(1):,}{'' if fixed else ' per worker'}"


def _describe_updates(config: Config) -> str:
    """Return the text for the length of the training in updates, epochs or tokens."""
    epochs = config.schedule.num_train_epochs
    if tokens := config.recipe.train_tokens:
        return _format_tokens(tokens)
    return f"{config.schedule.steps:,}" if epochs is None else f"{epochs:g} epochs"


def _format_tokens(number: int) -> str:
    """Return the text for a number of tokens, in millions."""
    return f"{number // 10**6:,} million tokens"


def _describe_rate(config: Config) -> str:
    """Return the text for the base learning rate and its warm-up."""
    schedule = config.schedule
    rising = f"{schedule.warmup:,}" if isinstance(schedule.warmup, int) else f"{100 * schedule.warmup:g} %"
    if tokens := config.recipe.warmup_tokens:
        rising = _format_tokens(tokens)
    begins = config.formula.start_warmup_step
    start = f" from {begins}" if begins else ""
    return f"{schedule.base_learning_rate:g}, {rising}{start}"


def _describe_data(config: Config) -> str:
    """Return the text for the sequence length, and for the number of masks if every example may have the same
    number.
    """
    length, masks = config.data.max_seq_length, config.data.max_predictions_per_seq
    return "any" if length is None else f"{length}" if masks is None else f"{length}/{masks}"


def _describe_device(config: Config) -> str:
    """Return the text for the device, the precision, and whether the model is compiled."""
    keys = config.as_json()
    device = "yours" if keys["device"] == "auto" else keys["device"]
    precision = [] if keys["precision"] == "fp32" else [keys["precision"]]
    return ", ".join([device, *precision, *(["compiled"] if keys["compile"] else [])])


def _make_key_table(names: Sequence[str], schemas: Mapping[str, dict[str, Any]]) -> str:
    """Return the Markdown table of these configuration keys.

    schemas: JSON Schema of each key.
    """
    rows = "".join(
        f"| `{name}`{' *' if 'by_phase' in schemas[name] else ''} | {_describe_default(schemas[name])} | "
        f"{_describe_values(schemas[name])} | {schemas[name]['description'].replace('|', chr(92) + '|')} |\n"
        for name in names
    )
    return f"| key | default | values | meaning |\n|---|---|---|---|\n{rows}"


def _describe_default(item: Mapping[str, Any]) -> str:
    """Return the text for a key's default.

    item: JSON Schema of the key.
    """
    return f"`{json.dumps(item['default'])}`" if "default" in item else ""


def _describe_values(item: Mapping[str, Any]) -> str:
    """Return the text for the values that a key accepts.

    item: JSON Schema of the key.
    """
    if "enum" in item:
        return ", ".join(f"`{value}`" for value in item["enum"] if value is not None)
    if "examples" in item:
        return ", ".join(f"`{value}`" for value in [*item["examples"], "package.module:NAME"])
    bounds = [
        f"{sign} {item[keyword]:,}"
        for keyword, sign in {
            "minimum": "≥",
            "exclusiveMinimum": ">",
            "maximum": "≤",
            "exclusiveMaximum": "<",
        }.items()
        # Some maxima are the largest number that any key accepts. They are left out.
        if keyword in item and item[keyword] not in (MAX_INTEGER, MAX_FLOAT)
    ]
    kinds = " or ".join(_KINDS[kind] for kind in list_types(item) if kind != "null")
    return f"{kinds} {', '.join(bounds)}".strip()


def draw_pictures() -> dict[str, str]:
    """Return the pictures of all schedules, and of a batch size that grows, by the name of the picture's
    file.
    """
    found = {}
    for name in list_names("schedule"):
        schedule = find("schedule", name).formula(1.0, _STEPS, Warmup.of(20, _STEPS), **DRAWN.get(name, {}))
        found[f"{name}.svg"] = _draw_picture(schedule)
    warmup = TokenWarmup(sequences=1, tokens=_STEPS * 3)
    settings = ModernBertSettings(batch_size=8, micro_batch_size=1, max_seq_len=1, warmup=warmup)
    course = UpdateCourse(
        stretches=tuple(iterate_stretches(BatchWarmup(settings), 1, settings.rows)), tokens=1
    )
    found["batch_warmup.svg"] = _draw_picture(lambda update: course.micro_batches(update) / settings.rows)
    return found


def _draw_picture(schedule: Schedule) -> str:
    """Return an SVG picture with a curve of the learning rate over the updates.

    Its top edge is the base rate.
    """
    width, height = _WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE
    points = " ".join(
        f"{_EDGE + width * step / _STEPS:.1f},{_EDGE + height * (1 - schedule(step)):.1f}"
        for step in range(_STEPS)
    )
    axes = f"{_EDGE},{_EDGE} {_EDGE},{_HEIGHT - _EDGE} {_WIDTH - _EDGE},{_HEIGHT - _EDGE}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" fill="none">\n'
        f'<polyline points="{axes}" stroke="#888"/>\n'
        f'<polyline points="{points}" stroke="#27c" stroke-width="1.5"/>\n</svg>\n'
    )
