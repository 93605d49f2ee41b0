"""Extracts plain-text articles from a MediaWiki dump, with the same bytes as the program wikiextractor.

The main function is in ``extract``. ``dump/`` reads the dump as blocks of whole pages. ``block_work``
extracts the articles of a block in a worker process. ``articles/`` writes the result. ``ranges/`` does the
same work on several machines: each worker reads a byte range of the dump, and ``fold`` joins the results.

``extractor`` is the interface of the extractors, and ``open_extractor`` chooses an extractor. The package
``wikiextractor/`` calls the program wikiextractor 3.1.0 in this process. ``mlperf/`` is a readable version of
the older wikiextractor that MLPerf uses. There is also a C++ kernel for each of the two.
"""
