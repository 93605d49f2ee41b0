"""Dump to parts: articles, cleaning, sentences, evaluation set, parts.

``segment.segment`` is the step from extracted articles to parts of either recipe; ``mlperf`` and
``nvidia`` are its two text stages, made of ``frames``, ``cleaning``, ``sentences`` (Punkt),
``evaluation``, ``parts`` and ``nvidia_sharding``.
"""
