"""Runs of the trainer: pre-training, fine-tuning, evaluation and prediction.

The path of an update starts in ``pretrain.pretrain``. ``training_loop.train_phase`` builds the model, loads
the start point and opens the loader. ``training_loop.make_updates`` is the loop: it takes micro-batches from
``trainer.data.loader.Loader``, makes the update with ``trainer.update.strategy.Strategy.update``, logs it
with ``pending_updates.PendingUpdates`` and saves checkpoints with ``training_state.Training.save``.
"""
