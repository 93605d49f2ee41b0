"""Plans for split models: which layers form a stage, which stages are sharded, and how many
micro-batches there are.
"""
