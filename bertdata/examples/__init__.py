"""Turns tokenised documents into training examples.

Each sub-package is one objective (what a model learns, such as BERT's masked words and next sentence) or code
that objectives share. ``objective`` is the interface of an objective, ``objectives`` finds one by name, and
``fields`` converts examples to the fields of a file format. ``masking`` and ``random_stream`` specify masks
and random draws.
"""
