"""Documents to examples: one folder an objective, and what objectives share.

``objective`` is the seam, ``objectives`` finds one by name, ``fields`` makes a container's fields of an
example's columns; ``masking`` and ``random_stream`` are the specification that objectives share.
"""
