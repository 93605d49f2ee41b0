"""The formats of other programs' checkpoints: recognising, reading and writing them.

They are tf1, tf2, nvidia, habana, graphcore and huggingface.
"""

from collections.abc import Callable
from dataclasses import replace

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.checkpoints.formats.hub_cache import find_pretrained
from trainer.checkpoints.formats.huggingface import find_weights, read_huggingface, write_huggingface
from trainer.checkpoints.formats.nvidia import read_nvidia, write_nvidia
from trainer.checkpoints.formats.tensor_bundle.bundle import Bundle, find_prefix
from trainer.checkpoints.formats.tensor_bundle.object_graph import GRAPH_KEY
from trainer.checkpoints.formats.tensorflow1 import read_tensorflow1, write_tensorflow1
from trainer.checkpoints.formats.tensorflow2 import read_tensorflow2, write_tensorflow2

WRITERS: dict[str, Callable[[Checkpoint, str], str]] = {
    "huggingface": write_huggingface,
    "tf1": write_tensorflow1,
    "tf2": write_tensorflow2,
    "nvidia": write_nvidia,
}
"""For each format that can be written, the function that writes it. The function takes a checkpoint and a new
directory, writes the files, and returns the path to report to the user.
"""

_TENSORFLOW = ("tf1", "tf2")
_TORCH_FILES = (".pt", ".pth")


def read_checkpoint(path: str, kind: str | None = None, model_config: str | None = None) -> Checkpoint:
    """Open the checkpoint at a path. Only names, shapes and configuration are read now.

    CheckpointError or DataError for a damaged file. Reading a tensor later raises DataError unless all its
    values are finite floating-point numbers.
    path: a directory or a file of weights. For TensorFlow's pair of index and data files, it may also be
    their common prefix. The name of a model in Hugging Face's cache is accepted too.
    kind: name of the format, or None to recognise it from the files.
    model_config: model file to read instead of the file next to the weights.
    """
    found = _read(find_pretrained(path), kind, model_config)
    checked = {name: tensor.check_on_read(f"{found.path}: {name}") for name, tensor in found.weights.items()}
    return replace(found, weights=checked)


def _read(path: str, kind: str | None, model_config: str | None) -> Checkpoint:
    """Recognise the format of the checkpoint at a path, and open it with the function for this format."""
    # The format is recognised by its files: TensorFlow's by an .index file, NVIDIA's and Habana's by a .pt
    # file. Everything else is read as Hugging Face's format.
    if kind in (None, *_TENSORFLOW) and (prefix := find_prefix(path)) is not None:
        bundle = Bundle(prefix)
        found, read = ("tf2", read_tensorflow2) if GRAPH_KEY in bundle.entries else ("tf1", read_tensorflow1)
        if kind not in (None, found):
            raise SettingsError(f"{prefix}: is a checkpoint of kind {found}, not {kind}")
        return read(bundle, model_config)
    if kind in _TENSORFLOW:
        raise MissingInputError(f"{path}: no TensorFlow checkpoint: found no .index file")
    file = find_torch_file(path, kind)
    if file is not None:
        return read_nvidia(file, model_config, kind or "nvidia")
    return read_huggingface(path, model_config, kind or "huggingface")


def find_torch_file(path: str, kind: str | None) -> str | None:
    """Return the path of the .pt file that NVIDIA's or Habana's program wrote. None if there is none."""
    is_asked = kind in ("nvidia", "habana")
    if not storage.is_directory(path):
        return path if is_asked or (kind is None and path.endswith(_TORCH_FILES)) else None
    if not is_asked and (kind is not None or find_weights(path)):
        return None
    files = [name for name in storage.list_files(path) if name.endswith(_TORCH_FILES) and "/" not in name]
    if len(files) == 1:
        return storage.join(path, files[0])
    if is_asked:
        raise MissingInputError(f"{path}: holds {len(files)} .pt files, expected one; name the file")
    return None


def is_recognised(path: str) -> bool:
    """Return whether the path is a checkpoint of a known format, or a directory with such a checkpoint."""
    if find_prefix(path) is not None:
        return True
    if not storage.is_directory(path):
        return storage.exists(path)
    has_config = storage.exists(storage.join(path, "config.json"))
    return has_config or (find_weights(path) or find_torch_file(path, None)) is not None
