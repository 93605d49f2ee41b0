"""Documents mixed over a whole corpus, the same way whoever does it.

Each document has a key, a hash of its content and place. The keys' order is cut into shards of near
equal numbers of tokens; a shard's documents are those between two cuts, in the order of their keys.
Neither the order of the inputs nor who handles which of them can change anything.
"""

from bertdata.build.shuffle.cuts import count_tokens, deal_out, find_cuts
from bertdata.build.shuffle.gather import gather_documents
from bertdata.build.shuffle.keys import SortedDocuments, sort_documents

__all__ = ["SortedDocuments", "count_tokens", "deal_out", "find_cuts", "gather_documents", "sort_documents"]
