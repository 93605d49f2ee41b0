"""The trainer that consumes bertdata's datasets.

The command line is ``python -m trainer``. Its commands are also functions, with the same names and settings::

    import trainer

    run = trainer.pretrain(config="tiny", train_data="shards", output_dir="run", steps=400)
    print(run.loss, trainer.predict("run", "Paris is the [MASK] of France."))

``__all__`` lists the public names. Every other name is private and may change.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.functions.convert import convert
    from trainer.functions.evaluate import evaluate
    from trainer.functions.finetune import finetune
    from trainer.functions.predict import predict
    from trainer.functions.pretrain import pretrain
    from trainer.functions.write_report import write_report

__all__ = ["convert", "evaluate", "finetune", "predict", "pretrain", "write_report"]
"""Names of the public functions.

The module of ``trainer.functions`` with the function's name is imported when the function is first used.
"""

if not TYPE_CHECKING:  # type checkers see only the imports above

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        function = getattr(import_module(f"trainer.functions.{name}"), name)
        found = globals()[name] = import_module("trainer.functions.keys").name_keys(function)
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
