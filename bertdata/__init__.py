"""Preparation of pre-training data for BERT-like encoders: deterministic, verifiable and fast.

Text goes in, as plain text, records (JSONL, CSV, Parquet, ...) or a Wikipedia dump. Shards of training
examples come out. A recipe such as ``mlperf`` makes exactly the examples of the original program. The command
line is ``bertdata``. Its commands are also functions, with the same names and settings::

    import bertdata

    bertdata.create("results/part-*", "shards", vocab="vocab.txt", recipe="mlperf")
    assert bertdata.verify("shards").sound

``__all__`` lists the public names. Every other name is private and may change.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertdata import errors
    from bertdata.sources.in_memory import Records
    from bertdata.steps.create import create
    from bertdata.steps.extract import extract
    from bertdata.steps.find_date import find_date
    from bertdata.steps.lineage import lineage
    from bertdata.steps.open_dataset import open_dataset
    from bertdata.steps.pack import pack
    from bertdata.steps.rebuild import rebuild
    from bertdata.steps.segment import segment
    from bertdata.steps.show import show
    from bertdata.steps.sign import sign
    from bertdata.steps.stats import stats
    from bertdata.steps.train_vocab import train_vocab
    from bertdata.steps.verify import verify
    from bertdata.steps.write_report import report, write_report

__version__ = "0.1.0"

__all__ = [
    "Records",
    "__version__",
    "create",
    "errors",
    "extract",
    "find_date",
    "lineage",
    "open_dataset",
    "pack",
    "rebuild",
    "report",
    "segment",
    "show",
    "sign",
    "stats",
    "train_vocab",
    "verify",
    "write_report",
]

_MODULES = {"Records": "bertdata.sources.in_memory", "report": "bertdata.steps.write_report"}
"""For some public names, the module that has them.

Any other name is that of a step, in the module of ``bertdata.steps`` with the step's name. The module of a
name is imported when the name is first used.
"""


if not TYPE_CHECKING:  # type checkers see only the imports above

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name == "errors":
            return import_module("bertdata.errors")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_MODULES.get(name, f"bertdata.steps.{name}")), name)
        if not isinstance(found, type):
            # The command line calls the same functions, whose errors name its flags.
            found = import_module("bertdata.steps.argument_names").name_arguments(found)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
