"""Examples to packed rows, from the dataset to be packed to the one that holds the rows.

``source`` finds the examples and counts their lengths; ``methods`` makes the plan of the rows, ``placement``
gives each example its place; ``sort`` writes examples sorted by row into files, ``gather`` makes a shard of
them; ``run`` does it all. What a packed shard looks like is ``bertdata.shards.packed``, for a reader of
shards must know it. Modules here need NumPy when they are imported.
"""
