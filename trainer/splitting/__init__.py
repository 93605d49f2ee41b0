"""Training of models that are split over devices: layers in pipeline stages, weights in shards, and plans for
both.
"""
