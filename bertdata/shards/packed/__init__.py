"""Read and write packed rows. A packed row holds several examples.

Programs store packed rows in different layouts. Each layout has a module, and all have the same interface.
"""
