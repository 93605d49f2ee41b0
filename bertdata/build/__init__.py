"""The plan of a dataset, and the tasks that create its shards.

Both the command line and the Beam pipelines run these tasks.
"""
