"""Conversion to fairseq's binary format: a single shard ``train.bin``, with its ``train.idx`` and
``dict.txt``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bertdata.build.conversion.job import ConversionJob, ConvertedShard
from bertdata.dataset.shard_group import write_shard_group
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective
from bertdata.io.file_check import HashingSink
from bertdata.records import ExampleBatch, Vocabulary
from bertdata.shards.fairseq.blocks import check_blocks
from bertdata.shards.fairseq.writer import FairseqWriter
from bertdata.shards.write import CountingWriter
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME, check_token_order
from bertdata.tokens.load import vocabulary_of


def check_for_fairseq(objective: str, name: str, has_masks: bool, vocabulary: Vocabulary) -> None:
    """Raise SettingsError if fairseq's format cannot hold a dataset.

    It can hold unmasked blocks of text whose token ids are numbered in fairseq's order.
    """
    check_blocks(find_objective(objective), name)
    if has_masks:
        raise SettingsError(
            f"{name}: its examples have masks, which fairseq draws itself; make them with create --no-masks"
        )
    check_token_order(vocabulary)


def write_data_bin(job: ConversionJob, number: int, batches: Iterable[ExampleBatch]) -> ConvertedShard:
    """Write all examples of the source, in order, into the single ``.bin`` file of a fairseq dataset."""
    [name] = job.names[number]
    made: list[FairseqWriter] = []

    def open_writer(_: int, sink: HashingSink) -> FairseqWriter:
        made.append(FairseqWriter(sink, job.layout, vocabulary_of(job.tokenizer)))
        return made[-1]

    def write_all(writers: Sequence[CountingWriter]) -> None:
        for batch in _drop_word_starts(job, batches):
            writers[0].write(batch)

    [entry] = write_shard_group(job.dataset, [name], job.layout, open_writer, write_all)
    job.dataset.commit.write(DICTIONARY_NAME, made[0].dump_dictionary())
    entry = replace(entry, index_md5=job.dataset.write_index(name, made[0].index()))
    job.dataset.record(job.corpus, entry)
    return ConvertedShard(number=number, entries=(entry,))


def _drop_word_starts(job: ConversionJob, batches: Iterable[ExampleBatch]) -> Iterator[ExampleBatch]:
    """Yield the batches without the column that marks word starts.

    fairseq's format has no place for this column. fairseq finds word starts itself.
    """
    kind = find_objective(job.layout.objective).batch_type
    for batch in batches:
        yield kind(**{column.name: getattr(batch, column.name) for column in kind.columns()})
