"""Pack the examples of a dataset into rows that hold several examples each, and write them as a new dataset.

``input_dataset`` opens the dataset and counts the lengths of its examples. ``methods`` plans which lengths
share a row, and ``placement`` assigns each example a row and a place in it. ``sort`` writes the examples to
scratch files sorted by row, and ``gather`` merges these files into shards. ``run`` calls these modules one
after another. ``bertdata.shards.packed`` defines the file layouts, because shard readers need them too. The
modules here need NumPy when they are imported.
"""
