"""Deterministic, verifiable, fast preparation of BERT pre-training data.

Text with one sentence a line goes in; shards come out that hold exactly the examples which MLPerf's,
Google's, NVIDIA's or Graphcore's program would have made. The command line is ``bertdata``. A shard of
examples is read by::

    from bertdata.shards.containers import open_reader

    with open_reader("part-00000.tfrecord") as reader:
        for batch in reader.batches(512):
            for example in batch.examples():
                print(example.ids)
"""

__version__ = "0.1.0"
