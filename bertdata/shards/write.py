"""Writing examples as one container, hashed on the way."""

import hashlib
from collections.abc import Callable

from bertdata._native import Engine
from bertdata.config.settings import ExampleSettings
from bertdata.io.file_check import HashingSink
from bertdata.records import ExampleBatch, ExampleSource
from bertdata.shards.containers import make_writer
from bertdata.shards.tfrecord import encode_batch

BATCH = 128
"""Examples encoded at a time: enough to amortise a call, few enough for the cache."""


def write_examples(
    examples: ExampleSource,
    settings: ExampleSettings,
    sink: HashingSink,
    *,
    engine: Engine | None,
    start: int = 0,
    step: int = 1,
    tell: Callable[[int], None] | None = None,
    also: Callable[[ExampleBatch], None] | None = None,
) -> str:
    """Write examples start, start + step, ... as one container; their content md5.

    tell: called with the number of the example up to which all is written. also: gets each batch too.
    """
    writer = make_writer(settings.format, sink, settings.layout, engine)
    content = None if settings.format == "tfrecord" else hashlib.md5(usedforsecurity=False)
    for first in range(start, len(examples), BATCH * step):
        batch = examples.batch(first, min(first + BATCH * step, len(examples)), step)
        writer.write(batch)
        if content is not None:
            content.update(encode_batch(batch, settings.layout, engine))
        if also is not None:
            also(batch)
        if tell is not None:
            tell(first)
    writer.close()
    return sink.md5 if content is None else content.hexdigest()
