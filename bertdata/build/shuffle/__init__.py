"""Documents mixed over a whole corpus, the same way whoever does it.

Each document has a key, a hash of its content and place (``keys``). The keys' order is cut into shards of
near equal numbers of tokens (``cuts``); a shard's documents are those between two cuts, in the order of
their keys (``gather``). Neither the order of the inputs nor who handles which of them can change anything.
"""
