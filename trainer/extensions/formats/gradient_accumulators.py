"""MLPerf's slots for accumulated gradients, added to a checkpoint of TensorFlow 1."""

import torch

from bertdata.errors import DatasetError, MissingInputError
from bertdata.io import storage
from trainer.errors import CheckpointError
from trainer.extensions.formats.tensor_bundle.object_graph import GRAPH_KEY
from trainer.extensions.formats.tensor_bundle.prefix import find_prefix
from trainer.extensions.formats.tensor_bundle.reader import Bundle
from trainer.extensions.formats.tensor_bundle.writer import write_bundle
from trainer.extensions.formats.tensorflow1 import ACCUMULATOR, write_state_file

_WRITTEN = (torch.float32, torch.int64)


def add_accumulators(source: str, target: str) -> str:
    """Copy a checkpoint with a zero NAME/GradientAccumulator beside every variable; returns a message.

    Moments, powers and counters get one too, as MLPerf's checkpoint_add_gradacc.py does it. source: the
    prefix of a checkpoint of TensorFlow 1, or its directory. target: the prefix to write.
    """
    prefix = find_prefix(source)
    if prefix is None:
        raise MissingInputError(f"{source}: no TensorFlow checkpoint: found no .index file")
    if storage.exists(f"{target}.index"):
        raise DatasetError(f"{target}.index: is there already; name a checkpoint that does not exist yet")
    bundle = Bundle(prefix)
    if GRAPH_KEY in bundle.entries:
        raise CheckpointError(f"{prefix}: is a checkpoint of TensorFlow 2, expected one of TensorFlow 1")
    folder = storage.parent(target)
    storage.make_directory(folder)
    with write_bundle(target) as written:
        for name in sorted(bundle.entries):
            tensor = bundle.read(name)
            if tensor.dtype not in _WRITTEN:
                raise CheckpointError(f"{bundle.index}: {name} is of {tensor.dtype}, expected fp32 or int64")
            written.add(name, tensor)
            written.add(f"{name}{ACCUMULATOR}", torch.zeros_like(tensor))
    write_state_file(folder, storage.base_name(target))
    return f"{target}: {len(bundle.entries)} variables, each with a zero {ACCUMULATOR.lstrip('/')}"
