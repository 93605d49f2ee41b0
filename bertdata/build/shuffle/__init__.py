"""Global shuffle: the documents of all inputs are mixed and divided into shards.

Each document gets a key, which is a hash of its content and position (``keys``). The documents are sorted by
key, which is a random order. This order is cut into shards with nearly equal numbers of tokens
(``document_cuts``). The documents between two cuts form a shard (``gather``). The keys depend only on the
documents, so the result is the same in whatever order and on however many machines the inputs are processed.
"""
