"""Training data: opening a dataset, choosing the order of its examples, and making batches of tensors.

``loader.Loader`` yields a worker's micro-batches. ``order`` decides which examples come next and which worker
gets them. ``examples`` decodes and gathers them, and ``batches`` (flat) or ``row_batches`` (padded rows) turn
them into tensors.
"""
