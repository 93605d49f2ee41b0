"""Datasets in other programs' layouts: their examples in order, or permuted, cut into shards anew.

``cuts`` says which example goes where, ``chop`` and ``permute`` bring them there, ``shard`` writes one
shard, ``run`` makes the whole. Modules here need NumPy when they are imported.
"""
