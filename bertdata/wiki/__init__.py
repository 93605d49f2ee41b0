"""A MediaWiki dump to extracted articles.

``extract`` is the step. It reads downwards: ``dump`` (bzip2 streams and pages, in blocks), ``pages``,
``templates``, ``rendering`` with ``wikiextractor`` (the package, called in process), ``article_files``,
``report`` and ``manifest``.
"""
