"""Extract articles from a MediaWiki dump, with the output of wikiextractor.

Start reading with ``extract``. ``dump/`` reads the dump as blocks of whole pages, ``block_work`` is a
worker's task, ``articles/`` writes the result. ``ranges/`` does the same work on several machines: each
worker reads a byte range of the dump, and ``fold`` joins the ranges.

``extractor`` is the interface of the extractors, and ``open_extractor`` chooses one. The package
``wikiextractor/`` calls wikiextractor 3.1.0 in process. ``mlperf/`` is a readable version of the extractor
that MLPerf pins. Both also have C++ kernels.
"""
