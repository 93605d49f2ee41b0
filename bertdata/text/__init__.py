"""Extracted articles to sentences, evaluation set and parts.

``segment`` is the step: files of articles to the parts of either recipe, ``mlperf`` or ``nvidia``. It is
made of ``plan``, ``doc_tags`` (the frame of an article), ``cleaning``, ``sentences`` (Punkt), ``evaluation``
(withheld articles), ``parts`` and ``nvidia_sharding``; ``directory`` and ``manifest`` are what it leaves.
"""
