"""Conversion of datasets to the layouts of other programs.

The examples keep their order or are permuted, and are divided into new shards. ``example_cuts`` says which
example goes to which shard. ``chop`` (same order) and ``permute`` (new order) move the examples there,
``shard`` writes one shard, and ``run`` does the whole conversion. The modules require NumPy.
"""
