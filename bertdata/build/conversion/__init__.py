"""Conversion of datasets to the layouts (file formats and divisions into shards) of other programs.

The examples are distributed to new shards, either in their old order or in NVIDIA's permuted order.
``example_cuts`` computes which example goes to which shard. ``chop`` writes the shards in the old order and
``permute`` in the permuted order. ``shard`` writes a single shard, and ``run`` does the whole conversion. The
modules require NumPy.
"""
