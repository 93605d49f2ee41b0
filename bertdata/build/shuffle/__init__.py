"""Global shuffle: the documents of a whole corpus are mixed and divided into shards.

Each document gets a key, which is a hash of its content and position (``keys``). The order of the keys is the
shuffled order. It is cut into shards with nearly equal numbers of tokens (``document_cuts``). A shard
consists of the documents between two cuts (``gather``). Since the keys depend on the documents alone, the
result is the same in whatever order and on however many machines the parts are processed.
"""
