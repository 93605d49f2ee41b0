"""Planning of how a model is split over devices: which layers form a stage, what is sharded, how many
micro-batches.
"""
