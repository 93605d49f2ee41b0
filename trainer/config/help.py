"""Help of the trainer's flags, by section: the keys that people use, or all."""

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertdata.cli.common.parser import Parser
from trainer.config.files import shipped_configs
from trainer.config.phases import ambiguous
from trainer.config.settings import (
    SECTIONS,
    add_flag,
    device_properties,
    flag,
    known_names,
    older_names,
    phase_names,
    properties,
    section_keys,
    united,
)

TITLES = {
    "run": "run",
    "workers": "workers",
    "start": "start from a checkpoint",
    "evaluation": "evaluations",
    "data": "data",
    "loading": "rows, length bins, packing at load",
    "masking": "masks",
    "model": "model",
    "modernbert": "ModernBERT, model_type modernbert",
    "update": "update of the weights",
    "optimiser": "optimiser",
    "scaling": "loss scale of fp16",
    "split": "division of the model over the devices",
    "schedule": "learning rate",
    "formula": "formula of the learning rate",
    "recipe": "growing updates, the end of the schedule",
    "reports": "reports",
    "loggers": "further logs",
    "finetuning": "fine-tuning",
}
_HINT = "Other keys: --help-all. Other programs' command lines: python -m trainer like."


def make_parser(prog: str, everything: bool = False, usual: Mapping[str, Any] | None = None) -> Parser:
    """The parser of all flags. Its help shows the common keys, or all with ``everything``.

    usual: the command's own defaults.
    """
    own = "finetuning" if prog.endswith(" finetune") else ""
    data = "--start-from-ckpt bert --data-dir mrpc" if own else "--train-data shards/phase1"
    parser = Parser(
        prog,
        f"  {prog} --config {'mrpc_base' if own else 'tiny'} {data} --output-dir run",
        "Every key below may also be in the JSON file; - and _ are equal in a flag's name.\n"
        "A key with X [X ...] takes two values, phase 1's and phase 2's; then both phases are run,\n"
        "as with --train-data-phase1 X --train-data-phase2 X." + ("" if everything else f"\n{_HINT}"),
    )
    parser.usage = "%(prog)s [--config FILE] [--KEY VALUE ...]"
    parser.add_argument(
        "--config", metavar="FILE", help=f"JSON file, or one of {', '.join(shipped_configs())}"
    )
    parser.add_argument(
        "--help-all",
        action=_HelpAll,
        usual=usual,
        nargs=0,
        default=SUPPRESS,
        help="show all flags, by section, and exit",
    )
    added = set[str]()
    for title, names in _groups():
        group = parser.add_argument_group(title)
        for name in names:
            if name not in added:
                shown = everything or _is_common(name) or (own != "" and name in section_keys(own))
                _add(group, name, shown, usual or {})
                added.add(name)
    return parser


def read_with_argparse(words: Sequence[str], prog: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """The values of flags by name. Exits after printing the help, or an error for words that do not fit."""
    _refuse_ambiguous(words)
    return united(vars(make_parser(prog, usual=usual).parse_args(words)))


def _refuse_ambiguous(words: Sequence[str]) -> None:
    """SettingsError for several datasets behind one flag, which may be united or each of a phase."""
    last, paths = "", list[str]()
    for word in [*words, "--"]:
        if not word.startswith("--"):
            paths.append(word)
            continue
        name = last[2:].replace("-", "_")
        if len(paths) > 1 and "phases" in known_names().get(name, {}):
            raise ambiguous(name, paths, flag)
        last, equals, value = word.partition("=")
        paths = [value] if equals else []


def _groups() -> Iterator[tuple[str, list[str]]]:
    """(title, names) of each group of flags, which may have names of an earlier one too."""
    for section in SECTIONS:
        phases = [(key, name) for name, (key, _) in phase_names().items()]
        keys = section_keys(section)
        yield TITLES[section], [name for key in keys for name in (key, *(n for k, n in phases if k == key))]
    options = device_properties()
    for devices in sorted({tuple(item["devices"]) for item in options.values()}):
        names = [name for name, item in options.items() if tuple(item["devices"]) == devices]
        yield f"device {' or '.join(devices)}", names
    yield "older names", list(older_names())


def _is_common(name: str) -> bool:
    """True for a name that the short help shows."""
    key, _ = phase_names().get(name, (name, 0))
    return "common" in properties().get(key, {})


def _add(group: _ArgumentGroup, name: str, shown: bool, usual: Mapping[str, Any]) -> None:
    """Add the flag of a name. Its value keeps the name as its destination."""
    add_flag(group, name, describe(name, usual).replace("%", "%%") if shown else SUPPRESS)


def describe(name: str, usual: Mapping[str, Any] | None = None) -> str:
    """The help text of a name. usual: defaults of the command that differ from the schema's."""
    if name in phase_names():
        key, phase = phase_names()[name]
        return f"{flag(key)} of phase {phase + 1}"
    if item := properties().get(name):
        known = item.get("enum", item.get("examples", ()))
        choices = [one for one in known if one and one not in item["description"]]
        listed = f": {', '.join(choices)}" if choices else ""
        if "examples" in item:
            listed += ", or your own package.module:NAME"
        text, own = item["description"], (usual or {}).get(name)
        if own is not None:
            return f"{text.partition(' (default: ')[0]}{listed} (default: {own})"
        default = f" (default: {item['default']})" if item.get("default") else ""
        return f"{text}{listed}{default}"
    if name in older_names():
        return f"same as {flag(older_names()[name])}"
    return str(known_names()[name]["description"])


class _HelpAll(Action):
    """Print the help of all flags, and exit."""

    def __init__(self, *, usual: Mapping[str, Any] | None, **more: Any) -> None:
        super().__init__(**more)
        self._usual = usual

    def __call__(self, parser: ArgumentParser, namespace: Namespace, *_: Any) -> None:
        make_parser(parser.prog, everything=True, usual=self._usual).print_help()
        parser.exit()
