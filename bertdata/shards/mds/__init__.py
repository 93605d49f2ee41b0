"""MDS, the shard format of Mosaic's Streaming: column types, shard files, index, and a container of ids."""
