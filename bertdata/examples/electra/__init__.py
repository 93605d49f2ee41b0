"""ELECTRA's objective: examples of one or two segments without masks. The model detects replaced tokens in
them.
"""
