"""Dump to parts: articles, clean paragraphs, sentences, evaluation set.

Two steps. ``extract.extract``, dump to extracted articles, reads downwards: ``dump`` (bzip2 streams and
pages, in blocks), ``pages``, ``templates``, ``wikiextractor`` (the package, called in process),
``article_files``, ``report``. ``segment.segment``, extracted articles to parts of either recipe:
``mlperf`` and ``nvidia``, made of ``plan``, ``frames``, ``cleaning``, ``sentences`` (Punkt),
``evaluation``, ``parts``, ``nvidia_sharding``.
"""
