"""The order of the examples of an epoch: NumPy's permutation of PCG64DXSM, dealt to the ranks in turn.

Needs NumPy when it is imported.
"""

import numpy as np

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.columns import Array
from bertdata.examples.pcg_stream import DxsmStream
from bertdata.loaders.modernbert.settings import ModernBertSettings


def find_order(
    examples: int, epoch: int, settings: ModernBertSettings, engine: Engine | None = None
) -> Array:
    """The numbers of a rank's examples of an epoch (from 0), in order, as int64.

    Padded from the order's own start until all ranks have equally many, again from there where the whole
    order is too short. With ``drop_last`` it is cut instead.
    """
    world = settings.world
    order = np.arange(examples, dtype=np.int64)
    if settings.shuffle:
        order = _permute(examples, settings.order_seed + epoch, engine)
    each = -(-examples // world)
    if settings.drop_last and examples % world:
        each = -(-(examples - world) // world)
    own: Array = np.resize(order, each * world)[settings.rank :: world]
    return own


def _permute(examples: int, seed: int, engine: Engine | None) -> Array:
    """``Generator(PCG64DXSM(seed)).permutation(examples)``."""
    if use_native(engine or default_engine()):
        return np.asarray(kernels.dxsm_permutation(seed, examples)).astype(np.int64)
    return np.array(DxsmStream(seed).permutation(examples), np.int64)
