"""The record of a conversion (lineage.json): its settings, its checkpoint and the files that flags named."""

from collections.abc import Callable, Iterator

import torch

from bertdata import __version__
from bertdata.dataset.companion_files import CARD_NAME
from bertdata.io import storage
from bertdata.lineages.documents import RecordDocuments, add_manifest
from bertdata.lineages.exported_model import LINEAGE_NAME, TRAINING_DATA, make_export_record
from bertdata.lineages.flag_files import make_model_input, make_tokenizer_input
from bertdata.lineages.step import Input
from trainer.checkpoints.any_checkpoint import OURS, Checkpoint
from trainer.checkpoints.kept_tokenizer import find_training_data
from trainer.checkpoints.records import add_checkpoint_record


def make_conversion_record(
    checkpoint: Checkpoint,
    to: str,
    *,
    kind: str | None,
    moments: bool,
    lower_case: bool | None,
    vocab: str | None,
    model_config: str | None,
    train_data: str | None,
) -> Callable[[str], bytes]:
    """Return a function that makes the file lineage.json of the converted model, which says where it is from.

    The function's argument is the directory with all other files of the model. A model card is not listed,
    since its readers may edit it.

    checkpoint: the checkpoint that is converted.
    The other arguments are those of ``convert``.
    """
    settings: dict[str, object] = {"to": to, "moments": moments, "task": checkpoint.task}
    if kind is not None:  # a directory may hold weights of several formats
        settings["from"] = kind
    if lower_case is not None:  # it decides the files of the tokeniser
        settings["lower_case"] = lower_case
    if checkpoint.kind == OURS:  # it says itself what model it is, so the file was not read
        model_config = None
    documents = RecordDocuments()
    source = add_checkpoint_record(checkpoint.path, documents, checkpoint.kind)
    inputs = list(_list_inputs(documents, vocab=vocab, model_config=model_config, train_data=train_data))

    def make_record(directory: str) -> bytes:
        return make_export_record(
            directory,
            [name for name in storage.list_files(directory) if name not in (LINEAGE_NAME, CARD_NAME)],
            settings=settings,
            versions={"bertdata": __version__, "torch": torch.__version__},
            source=source,
            documents=documents,
            inputs=inputs,
        )

    return make_record


def _list_inputs(
    documents: RecordDocuments, *, vocab: str | None, model_config: str | None, train_data: str | None
) -> Iterator[Input]:
    """Yield what the flags of a conversion have read, each with the md5s of the files.

    documents: the records of the conversion, to which those of the vocabulary and of the dataset are added.
    vocab, model_config, train_data: arguments of ``convert``. None: not given, or not used.
    """
    if vocab is not None:
        yield make_tokenizer_input(vocab, documents)
    if model_config is not None:
        yield make_model_input(model_config)
    # Without a manifest, a dataset has no tokeniser.
    dataset = find_training_data(train_data, given=True)
    if dataset is not None and dataset.manifest is not None:
        yield Input(role=TRAINING_DATA, record=add_manifest(dataset.path, documents))
