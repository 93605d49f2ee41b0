"""Deterministic, verifiable, fast preparation of BERT pre-training data.

Text with one sentence a line goes in; shards come out that hold exactly the examples which MLPerf's,
Google's, NVIDIA's or Graphcore's program would have made. The command line is ``bertdata``; from
Python, the steps are::

    from bertdata.tokens import parse_vocabulary, tokenize
    from bertdata.examples import make_examples
    from bertdata.shards.containers import make_writer, open_reader
"""

__version__ = "0.1.0"
