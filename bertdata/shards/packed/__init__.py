"""Read and write packed rows, each of which holds several examples.

Programs store packed rows in different layouts. Each layout has a module, all with the same interface.
"""
