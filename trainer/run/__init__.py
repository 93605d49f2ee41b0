"""Runs of the trainer: pre-training, fine-tuning, evaluation and prediction.

To follow an update through the code, begin with ``pretrain.pretrain``. ``training_loop.train_phase`` builds
the model, loads the checkpoint to start from, and opens the data loader. ``training_loop.make_updates`` is
the loop. It takes micro-batches from ``trainer.data.loader.Loader``, makes the update with
``trainer.update.strategy.Strategy.update``, logs it with ``pending_updates.PendingUpdates``, and saves
checkpoints with ``training_state.Training.save``.
"""
