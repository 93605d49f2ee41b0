"""A MediaWiki dump to extracted articles.

``extract`` is the step. It reads downwards: ``dump/`` gives blocks of whole pages, ``block_work`` is a
worker's share, ``articles/`` writes what comes out. ``ranges/`` is the same work where the workers share no
process: each reads a range of the dump's bytes, and a fold joins the ranges.
``extractor`` is the interface of the programs that articles are equal to, ``open_extractor`` chooses one:
``package/`` is wikiextractor 3.1.0 called in process, ``mlperf/`` the readable form of MLPerf's; kernels are
their native engines.
"""
