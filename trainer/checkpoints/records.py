"""The record of a checkpoint of any origin, and the records of everything that led to it.

A run and an exported model keep them, so that they say what they were made from after the data have moved.
"""

from pathlib import Path

from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.exported_model import LINEAGE_NAME, is_unchanged, read_export_record
from bertdata.lineages.run_state import CHECKPOINTS
from bertdata.lineages.weights_record import make_weights_record
from trainer.checkpoints.checkpoint import STATE
from trainer.checkpoints.formats.config_file import NAMES
from trainer.checkpoints.formats.hub_cache import find_pretrained
from trainer.checkpoints.formats.huggingface import find_weights
from trainer.checkpoints.formats.kinds import find_torch_file
from trainer.checkpoints.formats.tensor_bundle.bundle import find_prefix
from trainer.checkpoints.safetensors_files import INDEX
from trainer.checkpoints.source import find_trainer_checkpoint


def add_checkpoint_record(path: str, documents: RecordDocuments, kind: str | None = None) -> str:
    """Add the record of a checkpoint, and the records of everything that led to it, to the documents.

    The record is the checkpoint's state, the file lineage.json of a model that was exported or converted, or,
    for weights of another program, a list of their files with md5s.

    path: a run, a checkpoint, or weights of another program.
    kind: format in which the weights were read, as a directory may hold several. None: as it is recognised.
    Returns the md5 of the record.
    """
    own = find_trainer_checkpoint(path)
    directory = str(own) if own is not None else path
    lineage = storage.join(directory, LINEAGE_NAME)
    data = read_export_record(directory) if storage.is_directory(directory) else None
    # Another program may have trained on and stored its weights in the same directory.
    if data is not None and is_unchanged(directory, data, lineage):
        return documents.add(data, lineage)
    if own is not None:
        documents.add_directory(str(find_run_directory(own)))
        state = own / STATE
        return documents.add(state.read_bytes(), str(state))
    return documents.add(make_weights_record(_list_weight_files(find_pretrained(path), kind)), path)


def find_run_directory(checkpoint: Path) -> Path:
    """Return the directory of the run that has written a checkpoint.

    It is the checkpoint's own directory if the checkpoint is not in the folder of a run.
    """
    return checkpoint.parent.parent if checkpoint.parent.name == CHECKPOINTS else checkpoint


def _list_weight_files(path: str, kind: str | None) -> list[str]:
    """Return the files of another program's checkpoint: its weights, and the model file beside them.

    The format is recognised as by ``trainer.checkpoints.formats.kinds``, which has read them.
    """
    prefix = find_prefix(path) if kind in (None, "tf1", "tf2") else None
    if prefix is not None:
        folder, stem = storage.get_parent(prefix), storage.get_base_name(prefix)
        names = [
            name for name in storage.list_files(folder) if name.startswith(f"{stem}.") and "/" not in name
        ]
        files = [storage.join(folder, name) for name in names if not name.endswith(".meta")]
    else:
        file = path if not storage.is_directory(path) else find_torch_file(path, kind) or find_weights(path)
        files = [] if file is None else [file]
        folder = path if storage.is_directory(path) else storage.get_parent(path)
        if file is not None and file.endswith(INDEX):
            parts = parse_json_text(storage.read_bytes(file))["weight_map"].values()
            files += [storage.join(folder, name) for name in sorted(set(parts))]
    beside = (storage.join(folder, name) for name in NAMES)
    return [*files, *(path for path in beside if storage.exists(path))]
