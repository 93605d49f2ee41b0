"""MDS, the shard format of Mosaic's Streaming: types of columns, shard files, the index, and shards of token
ids.
"""
