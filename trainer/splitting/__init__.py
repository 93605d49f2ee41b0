"""Training of models that are split over devices, in pipeline stages or shards, and plans for it."""
