"""Documents to masked sentence pairs.

``making.make_examples`` is the step. Its specification, read top down: ``specification`` (passes over
the documents, final shuffle), ``pairs`` (chunks of sentences to pairs), ``masking`` (80/10/10), and
``random_stream`` (the draws, whose order is part of the specification).
"""

from bertdata.examples.make import make_examples

__all__ = ["make_examples"]
