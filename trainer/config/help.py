"""Help texts of the trainer's commands. The short help lists the flags that are common with a command, the
long help all flags.
"""

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bertdata.cli.common.parser import Parser
from bertdata.config.value_check import list_types
from trainer.config.files import find_shipped_configs, read_config
from trainer.config.help_keys import find_value_name, list_common_keys
from trainer.config.phases import make_ambiguous_data_error
from trainer.config.settings import (
    SECTIONS,
    add_flag,
    format_flag,
    get_device_key_schemas,
    get_key_schemas,
    get_known_names,
    get_other_names,
    get_phase_names,
    join_values,
    list_section_keys,
)
from trainer.config.task_names import find_name_in_command
from trainer.plugins import FINE_TUNED

TITLES = {
    "run": "run",
    "workers": "workers",
    "start": "starting point",
    "evaluation": "evaluations",
    "data": "data",
    "loading": "padded rows, length bins, packing at load",
    "masking": "masks",
    "model": "model",
    "modernbert": "ModernBERT, model_type modernbert",
    "update": "batch size, precision, optimiser",
    "optimiser": "settings of the optimiser",
    "scaling": "loss scale of fp16",
    "split": "splitting the model over devices",
    "schedule": "learning rate",
    "formula": "formula of the learning rate",
    "recipe": "phases in tokens, growing batches, end of the schedule",
    "reports": "log files and terminal",
    "loggers": "further logs",
    "finetuning": "fine-tuning",
}
"""Heading of each section in the help and in docs/configuration.md."""

_FINETUNE = "finetune"
_SINGLE_PHASE_COMMANDS = (_FINETUNE, "evaluate", "split")
"""Commands that train a single phase. Their help shows one value, N, where the help of other commands shows N
[N].
"""

_HEADINGS = {"loading": "padded rows", "masking": "vocabulary"}
"""Headings of two sections in the short help of fine-tuning and evaluation. Their short help lists a single
key of each section, so the usual heading would be too general.
"""

_FINETUNE_TEXTS = {
    "task": f"task to fine-tune: {', '.join(FINE_TUNED)} (your own table)",
    "task_dir": "directory with the task's files under their published names",
    "task_train_file": "file to fine-tune on (default: found in --data-dir)",
    "task_eval_file": "file to evaluate on (default: found in --data-dir)",
    "task_predict_file": "file without answers or labels to predict (default: found in --data-dir)",
    "do_predict": "write predictions for --predict-file",
    "eval_every": "number of updates between evaluations; 0: evaluate only at the end (default: one epoch)",
    "steps": "number of updates to train for, in place of --num-train-epochs",
    "max_seq_length": "largest number of token ids in an example (default: 384 for squad, else 128)",
    "vocab": "vocabulary of the tokeniser, a file or a name (default: from the checkpoint)",
    "rows": "use padded rows, one example per row, instead of flat batches",
    "compile": "compile the model if the device supports it (default: no)",
}
"""Help texts of some keys for the command finetune. The usual texts are about pre-training too."""

_EVALUATE_TEXTS = {
    "output_dir": "directory of the run whose checkpoint is evaluated, or with --start-from-ckpt any "
    "directory; the results are written to it",
    "start_from_ckpt": "checkpoint to evaluate, from this trainer or another program (default: a checkpoint "
    "of the run in --output-dir)",
    "resume_step": "number of the update whose checkpoint in --output-dir is evaluated (default: the last)",
    "train_data": "training data of the run. The score of guessing by their most frequent words and labels "
    "is printed for comparison",
    "task": f"task to evaluate: pretraining, {', '.join(FINE_TUNED)} (default: the task that the checkpoint "
    "was trained on)",
    "task_dir": "directory with the files of a fine-tuning task under their published names",
    "task_eval_file": "file of a fine-tuning task to evaluate on (default: found in --data-dir, else the "
    "file that the run was evaluated on)",
    "task_predict_file": "with --do-predict: file without answers or labels to predict (default: found in "
    "--data-dir)",
    "do_predict": "write predictions for --predict-file to --output-dir",
}
"""Help texts of some keys for the command evaluate, which does not train."""

_SPLIT_TEXTS = {
    "device": "device on which --profile-layers measures times (default: auto, an accelerator of this "
    "machine, else cpu)",
    "train_data": "dataset that the model is to be trained on. Its objective decides which heads the model "
    "has",
    "max_seq_length": "number of token ids in an example (default: the longest that the model supports)",
    "plan": "print the plan in this file instead of computing a plan",
    "bandwidth": "bandwidth between two devices in GB/s, in each direction (default: half of the data "
    "sheet's)",
    "profile_layers": "measure the layers' times on --device, instead of computing the times",
    "task": f"task that the model is to be trained on: pretraining, {', '.join(FINE_TUNED)} (default: "
    "pretraining)",
}
"""Help texts of some keys for the command split, which computes a plan and does not train."""

_COMMAND_TEXTS = {_FINETUNE: _FINETUNE_TEXTS, "evaluate": _EVALUATE_TEXTS, "split": _SPLIT_TEXTS}
"""Help texts of keys that differ from the keys' usual help texts, by command."""

_EXAMPLES = {
    _FINETUNE: """\
  {prog} --config mrpc_base --start-from-ckpt bert --data-dir mrpc --output-dir run
  {prog} --task squad --start-from-ckpt bert --train-file train-v1.1.json --output-dir run""",
    "evaluate": "  {prog} --eval-data shards/eval --output-dir run",
    "split": "  {prog} --config rannc_4.9b --devices 8 --memory 32",
}
"""Examples at the top of a command's help. All other commands show the example of pre-training."""

_EXAMPLE = "  {prog} --config tiny --train-data shards/phase1 --output-dir run"
_IN_FILE = """\
Every flag is also a key of the JSON file: max_seq_length for --max-seq-length. Flags override the file.
In a flag's name, - and _ are equal."""
_PHASES = """\
A flag with N [N] takes one value, or two: phase 1's and phase 2's. With two values both phases are run, as
with --train-data-phase1 DATASET --train-data-phase2 DATASET."""
_MORE = "Other flags: --help-all. Other programs' command lines: python -m trainer like."


class _KeysParser(Parser):
    """A parser that accepts every flag, but prints the short help of ``make_help``.

    usual: defaults of this command that differ from the declared defaults.
    """

    def __init__(self, prog: str, usual: Mapping[str, Any]) -> None:
        super().__init__(prog, "", "")
        self._usual = usual
        self.add_argument("--config")
        self.add_argument("--help-all", action=_HelpAllAction, nargs=0, default=SUPPRESS)
        for name in get_known_names():
            add_flag(self, name)

    def format_help(self) -> str:
        """Return the command's short help."""
        return make_help(self.prog, usual=self._usual).format_help()

    def print_help_all(self) -> None:
        """Print the help of all flags."""
        make_help(self.prog, everything=True, usual=self._usual).print_help()


class _HelpAllAction(Action):
    """The argparse action of --help-all: print the help of all flags and exit."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, *_: Any) -> None:
        assert isinstance(parser, _KeysParser)
        parser.print_help_all()
        parser.exit()


def read_with_argparse(words: Sequence[str], prog: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """Parse a command line with a parser of all flags. Return the values under the names of their keys.

    If the words ask for help, print it and exit. If they are wrong, print an error and exit.
    """
    _refuse_ambiguous(words)
    return join_values(vars(_KeysParser(prog, usual).parse_args(words)))


def _refuse_ambiguous(words: Sequence[str]) -> None:
    """Raise SettingsError for a flag with several datasets, such as ``--train-data A B``, which is ambiguous.

    It could mean that both datasets are read together, or that each belongs to a phase.
    """
    last, paths = "", list[str]()
    for word in [*words, "--"]:
        if not word.startswith("--"):
            paths.append(word)
            continue
        name = last[2:].replace("-", "_")
        if len(paths) > 1 and "phases" in get_known_names().get(name, {}):
            raise make_ambiguous_data_error(name, paths, format_flag)
        last, equals, value = word.partition("=")
        paths = [value] if equals else []


def make_help(prog: str, everything: bool = False, usual: Mapping[str, Any] | None = None) -> Parser:
    """Return a parser that only prints the help of a command.

    prog: the program and its command, which is the last word.
    everything: show all flags instead of the command's common ones.
    usual: defaults of this command that differ from the declared defaults.
    """
    command = prog.rpartition(" ")[2]
    lines = [_IN_FILE, *([] if command == _FINETUNE else [_PHASES]), *([] if everything else [_MORE])]
    parser = Parser(prog, _EXAMPLES.get(command, _EXAMPLE).format(prog=prog), "\n".join(lines))
    parser.usage = "%(prog)s [--config FILE] [--KEY VALUE ...]"
    parser.add_argument(
        "--config", metavar="FILE", help=f"JSON file, or one of {', '.join(_list_usable_configs(command))}"
    )
    parser.add_argument("--help-all", action="store_true", help="show all flags and exit")
    add_keys_help(parser, None if everything else list_common_keys(command), command, usual or {})
    return parser


def _list_usable_configs(command: str) -> list[str]:
    """Return the names of the configurations that come with the trainer and suit the command.

    The command finetune can use configurations with a task, and all other commands those without a task.
    """
    tunes = command == _FINETUNE
    return [name for name in find_shipped_configs() if ("task" in read_config(name)) == tunes]


def add_keys_help(
    parser: Parser, shown: Collection[str] | None, command: str, usual: Mapping[str, Any]
) -> None:
    """Add the help of keys to a parser that only prints help.

    shown: names of the keys to list. None: all keys, with their other spellings and older names.
    command: name of the command whose help is printed.
    usual: defaults of the command that differ from the declared defaults.
    """
    added = set[str]()
    groups = list(_group_flags())
    if command == _FINETUNE:
        groups.sort(key=lambda group: group[0] != "finetuning")  # begin with the task's keys
    for section, names in groups:
        listed = [name for name in names if name not in added and (shown is None or name in shown)]
        added.update(listed)
        brief = shown is not None and command in (_FINETUNE, "evaluate")
        titles = TITLES | _HEADINGS if brief else TITLES
        group = parser.add_argument_group(titles.get(section, section))
        for name in listed:
            _add_flag_help(group, name, command, usual)


def _group_flags() -> Iterator[tuple[str, list[str]]]:
    """Yield (name of a section or title, names of flags) for each group of flags in the help.

    A flag may be in several groups.
    """
    for section in SECTIONS:
        phases = [(key, name) for name, (key, _) in get_phase_names().items()]
        keys = list_section_keys(section)
        yield section, [name for key in keys for name in (key, *(n for k, n in phases if k == key))]
    options = get_device_key_schemas()
    for devices in sorted({tuple(item["devices"]) for item in options.values()}):
        names = [name for name, item in options.items() if tuple(item["devices"]) == devices]
        yield f"device {' or '.join(devices)}", names
    yield "other spellings and older names", list(get_other_names())


def _add_flag_help(group: _ArgumentGroup, name: str, command: str, usual: Mapping[str, Any]) -> None:
    """Add the help of a flag: its spelling in this command, the word for its value, and its text."""
    item = get_known_names()[name]
    spelled = format_flag(find_name_in_command(name, command))
    text = _COMMAND_TEXTS.get(command, {}).get(name, "")
    text = (text or describe_key(name, usual)).replace("%", "%%")
    if "boolean" in list_types(item):
        # The help shows --rows for a switch that is off by default or belongs to a device. For other switches
        # it also shows the negation: --compile, --no-compile.
        is_off = item.get("default") is False or name in get_device_key_schemas()
        names = [spelled] if is_off else [spelled, f"--no-{spelled[2:]}"]
        group.add_argument(*names, action="store_true", help=text)
        return
    value = find_value_name(name)
    if "by_phase" in item and command not in _SINGLE_PHASE_COMMANDS:
        value = f"{value} [{value}]"
    group.add_argument(spelled, metavar=value, help=text)


def describe_key(name: str, usual: Mapping[str, Any] | None = None) -> str:
    """Return the help text of a key, or of another spelling or an older name of a key.

    usual: defaults of the command that differ from the declared defaults.
    """
    if name in get_phase_names():
        key, phase = get_phase_names()[name]
        return f"value of {format_flag(key)} in phase {phase + 1}"
    if item := get_key_schemas().get(name):
        known = item.get("enum", item.get("examples", ()))
        unnamed = [choice for choice in known if choice and choice not in item["description"]]
        choices = f": {', '.join(unnamed)}" if unnamed else ""
        if "examples" in item:
            choices += ", or your own package.module:NAME"
        text = item["description"]
        if (usual or {}).get(name) is not None:
            return f"{text.partition(' (default: ')[0]}{choices} (default: {(usual or {})[name]})"
        default = item.get("default")
        shown = "yes" if default is True else default
        return f"{text}{choices} (default: {shown})" if shown else f"{text}{choices}"
    if name in get_other_names():
        return f"same as {format_flag(get_other_names()[name])}"
    return str(get_known_names()[name]["description"])
