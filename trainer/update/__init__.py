"""Everything between the micro-batches of an update and the new weights.

``strategy.Strategy.update`` makes an update: forward and backward passes, the average over the workers
(``averaging``), then clipping and the optimiser (``step``, ``skipping``, ``optimisers``).
"""
