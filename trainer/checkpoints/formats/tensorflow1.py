"""TensorFlow 1 checkpoints of Google's, MLPerf's and Graphcore's programs: variables by name."""

from collections.abc import Iterator

import torch

from bertdata.errors import DatasetError, MissingInputError
from bertdata.io import storage
from trainer.checkpoints.any_checkpoint import MEAN, SQUARE, Checkpoint, StoredTensor, unpad_vocabulary
from trainer.checkpoints.formats.absent_parts import add_missing_biases
from trainer.checkpoints.formats.config_file import read_description, write_bert_config
from trainer.checkpoints.formats.graphcore import find_google_names, take_query_key_or_value
from trainer.checkpoints.formats.names import from_tensorflow, to_tensorflow
from trainer.checkpoints.formats.tensor_bundle.bundle import Bundle, find_prefix, write_bundle
from trainer.checkpoints.formats.tensor_bundle.object_graph import GRAPH_KEY
from trainer.errors import CheckpointError

_ACCUMULATOR = "/GradientAccumulator"
"""Suffix of the names of additional variables in which MLPerf's program sums up gradients."""

_STEP = "global_step"
_POWERS = ("beta1_power", "beta2_power")
_ACCUMULATED = (torch.float32, torch.int64)
_SLOTS = {
    "adamw-bert": ("adam_m", "adam_v"),
    "lamb-mlperf": ("LAMB", "LAMB_1"),
    "lamb-graphcore": ("lamb_m", "lamb_v"),
}
"""Suffixes of the variables with a weight's running mean and mean square, for the optimisers of Google's
program, MLPerf's LAMB and Graphcore's programs.
"""


def read_tensorflow1(bundle: Bundle, model_config: str | None = None) -> Checkpoint:
    """Read the checkpoint in a tensor bundle, which is TensorFlow's pair of an index file and data files.

    model_config: model file to read in place of the bert_config.json next to the bundle.
    """
    weights, moments = dict[str, StoredTensor](), dict[str, StoredTensor]()
    optimiser = None
    slots = {mean: (MEAN, owner) for owner, (mean, _) in _SLOTS.items()}
    slots |= {square: (SQUARE, owner) for owner, (_, square) in _SLOTS.items()}
    for name in bundle.entries:
        # `bert/pooler/dense/kernel/adam_m` is the slot adam_m of the variable `bert/pooler/dense/kernel`. Its
        # suffix also tells which optimiser made it.
        variable, _, slot = name.rpartition("/")
        if name.endswith(_ACCUMULATOR):
            continue
        if slot in slots:
            for ours, moment in _read_variable(bundle, name, variable):
                kind, optimiser = slots[slot]
                moments[f"{kind}/{ours}"] = moment
        else:
            weights |= _read_variable(bundle, name, name)
    if not weights:
        some = f"{len(bundle.entries)} variables, the first {next(iter(bundle.entries), 'none')}"
        raise CheckpointError(f"{bundle.index}: no BERT: found {some}")
    found = read_description(storage.get_parent(bundle.prefix), model_config, tanh=True)
    return Checkpoint(
        kind="tf1",
        path=bundle.prefix,
        config=found.config,
        warnings=found.file.warnings,
        weights=weights,
        moments=moments,
        updates=bundle.read_count(_STEP) if _STEP in bundle.entries else None,
        optimiser=optimiser,
    )


def _read_variable(bundle: Bundle, name: str, variable: str) -> Iterator[tuple[str, StoredTensor]]:
    """Yield (this trainer's name, tensor) for a variable of the bundle.

    A variable with query, key and value together, as in Graphcore's programs, gives three tensors. A variable
    that does not belong to a BERT gives none.

    name: name in the bundle. It is the variable's name, or the name of its moment, such as .../kernel/adam_m.
    variable: the variable's name.
    """
    whole = StoredTensor(bundle.entries[name].shape, lambda: bundle.read(name))
    names = find_google_names(variable)
    for number, googles in enumerate(names):
        if found := from_tensorflow(googles):
            stored = take_query_key_or_value(whole, number) if len(names) > 1 else whole
            yield found[0], stored.transpose() if found[1] else stored


def write_tensorflow1(checkpoint: Checkpoint, directory: str) -> str:
    """Write model.ckpt-N, the file ``checkpoint`` that names it, and bert_config.json.

    N is the number of updates. Return the path of model.ckpt-N without the endings of its files.
    """
    checkpoint = add_missing_biases(checkpoint, "TensorFlow's BERT", says_shape=True)
    config = checkpoint.expect_config()
    steps = (checkpoint.updates or 0) * checkpoint.steps_of_update
    newest = f"model.ckpt-{steps}"
    prefix = storage.join(directory, newest)
    storage.make_directory(directory)
    with write_bundle(prefix) as bundle:
        is_lamb = (checkpoint.optimiser or "").startswith("lamb")
        mean, square = _SLOTS["lamb-mlperf" if is_lamb else "adamw-bert"]
        endings = {"": "", MEAN: f"/{mean}", SQUARE: f"/{square}"}
        for key, tensor in unpad_vocabulary({**checkpoint.weights, **checkpoint.moments}, config).items():
            kind, _, ours = key.rpartition("/")
            name, is_transposed = to_tensorflow(ours)
            bundle.add(name + endings[kind], (tensor.transpose() if is_transposed else tensor).read())
        if checkpoint.updates is not None:
            bundle.add(_STEP, torch.tensor(steps))
            if is_lamb and checkpoint.moments:
                for power, beta in zip(_POWERS, checkpoint.betas, strict=True):
                    # TensorFlow stores a power of beta. After n updates the exponent is n + 1, that of the
                    # next update.
                    bundle.add(power, torch.tensor(beta ** (checkpoint.updates + 1)))
    write_bert_config(config, directory)
    write_state_file(directory, newest)
    return prefix


def write_state_file(directory: str, name: str) -> None:
    """Write the file ``checkpoint``, which names the newest checkpoint in a directory."""
    with storage.open_output(storage.join(directory, "checkpoint")) as file:
        keys = ("model_checkpoint_path", "all_model_checkpoint_paths")
        file.write("".join(f'{key}: "{name}"\n' for key in keys).encode())


def add_accumulators(source: str, target: str) -> str:
    """Copy a checkpoint, and add a variable of zeros NAME/GradientAccumulator for every variable NAME.

    Return a message. As in MLPerf's program checkpoint_add_gradacc.py, variables of the optimiser (moments,
    powers of beta and counters) get an accumulator too.
    source: path of a TensorFlow 1 checkpoint without the endings of its files, or its directory.
    target: path to write, without the endings of the files.
    """
    prefix = find_prefix(source)
    if prefix is None:
        raise MissingInputError(f"{source}: no TensorFlow checkpoint: found no .index file")
    if storage.exists(f"{target}.index"):
        raise DatasetError(f"{target}.index: is there already; name a checkpoint that does not exist yet")
    bundle = Bundle(prefix)
    if GRAPH_KEY in bundle.entries:
        raise CheckpointError(f"{prefix}: is a checkpoint of TensorFlow 2, expected one of TensorFlow 1")
    folder = storage.get_parent(target)
    storage.make_directory(folder)
    with write_bundle(target) as written:
        for name in sorted(bundle.entries):
            tensor = bundle.read(name)
            if tensor.dtype not in _ACCUMULATED:
                raise CheckpointError(f"{bundle.index}: {name} is of {tensor.dtype}, expected fp32 or int64")
            written.add(name, tensor)
            written.add(f"{name}{_ACCUMULATOR}", torch.zeros_like(tensor))
    write_state_file(folder, storage.get_base_name(target))
    return f"{target}: {len(bundle.entries)} variables, each with a zero {_ACCUMULATOR.lstrip('/')}"
