"""Everything between the micro-batches of an update and the new weights.

``strategy.Strategy.update`` makes an update. It runs forward and backward passes, and averages the gradients
over the workers (``averaging``). Then it clips them and runs the optimiser (``step``, ``skipping``,
``optimisers``).
"""
