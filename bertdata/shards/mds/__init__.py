"""MDS, the shard format of Mosaic's Streaming: column types, shard files, index, and shards of token ids."""
