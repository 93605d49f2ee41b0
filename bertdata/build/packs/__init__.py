"""Packed datasets: examples sorted by output row into files, packed shards gathered from these.

``source`` finds the examples and counts their lengths, ``sort`` writes sorted files, ``gather`` a shard.
Modules here need NumPy when they are imported.
"""
