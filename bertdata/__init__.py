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
    from bertdata.steps.create import create
    from bertdata.steps.extract import extract
    from bertdata.steps.find_date import find_date
    from bertdata.steps.open_dataset import open_dataset
    from bertdata.steps.pack import pack
    from bertdata.steps.segment import segment
    from bertdata.steps.stats import stats
    from bertdata.steps.verify import verify
    from bertdata.steps.write_report import write_report

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "create",
    "errors",
    "extract",
    "find_date",
    "open_dataset",
    "pack",
    "segment",
    "stats",
    "verify",
    "write_report",
]

_STEPS = {
    "create",
    "extract",
    "find_date",
    "open_dataset",
    "pack",
    "segment",
    "stats",
    "verify",
    "write_report",
}
"""Names of the public functions.

The module of ``bertdata.steps`` with the function's name is imported when the function is first used.
"""

if not TYPE_CHECKING:  # type checkers see only the imports above

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _STEPS:
            found = globals()[name] = getattr(import_module(f"bertdata.steps.{name}"), name)
            return found
        if name == "errors":
            return import_module("bertdata.errors")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
