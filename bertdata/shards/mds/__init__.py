"""MDS, the shards of Mosaic's Streaming: types, shard files, index, and the container of unmasked ids."""
