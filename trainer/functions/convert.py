"""The function ``trainer.convert``."""

from bertdata.errors import SettingsError
from bertdata.steps.values import AnyPath, convert_optional_path, convert_path
from trainer.commands.convert import SOURCES, TARGETS
from trainer.errors import name_missing_extra
from trainer.functions.progress import watch
from trainer.functions.results import ConvertResult


def convert(
    source: AnyPath,
    target: AnyPath,
    *,
    kind: str | None = None,
    to: str | None = None,
    model_config: AnyPath | None = None,
    vocab: AnyPath | None = None,
    train_data: AnyPath | None = None,
    lower_case: bool | None = None,
    moments: bool = True,
    task: str | None = None,
    overwrite: bool = False,
) -> ConvertResult:
    """Convert a checkpoint to another program's format, as ``python -m trainer convert`` does.

    source: a run, a checkpoint, or a directory or file with weights.
    target: directory to write, or its URL. It must not exist yet, unless overwrite is True.
    kind: format of the source, as a program's name. None: it is recognised from the files. The command's flag
        is ``--from``.
    to: format to write. None: "huggingface" for a checkpoint of this trainer, else "bertdata".
    model_config: model file. None: the file next to the weights.
    vocab: vocabulary, tokenizer.json, or a directory with one of them. None: the copy that the run keeps.
    train_data: the run's training data, if they have moved.
    lower_case: whether the tokeniser of a vocabulary lower-cases text. None: as for the training data.
    moments: False leaves out the optimiser's moments, which are two thirds of a checkpoint.
    task: your own task that the run was trained on, as package.module:CLASS. The class is imported.
    overwrite: replace what an earlier conversion wrote to the target.

    Raises UsageError (or a subclass) if an argument is wrong, and DataError (or a subclass) if the checkpoint
    is at fault.
    """
    for name, value, known in (("kind", kind, SOURCES), ("to", to, TARGETS)):
        if value is not None and value not in known:
            raise SettingsError(f"{name} is {value!r}, expected one of {', '.join(known)}")
    with watch(None) as watched, name_missing_extra("torch", "train"):
        from trainer.checkpoints.formats.convert import convert as convert_checkpoint

        text = convert_checkpoint(
            convert_path(source),
            convert_path(target),
            kind=kind,
            to=to,
            model_config=convert_optional_path(model_config),
            vocab=convert_optional_path(vocab),
            train_data=convert_optional_path(train_data),
            lower_case=lower_case,
            moments=moments,
            task=task,
            overwrite=overwrite,
        )
    return ConvertResult(directory=convert_path(target), text=text, warnings=tuple(watched.warnings))
