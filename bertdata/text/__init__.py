"""Turn extracted articles, books and other records into text parts and an evaluation set.

A text part is a file with one sentence per line. ``segment`` writes the parts of the recipes ``mlperf`` and
``nvidia`` from extracted articles or plain text. ``segment_records`` writes parts from the records of any
source that ``bertdata.sources`` reads. The work on the way is done by ``text_plan``, ``doc_tags`` (removes
WikiExtractor's tags), ``cleaning``, ``sentences`` (Punkt), ``mlperf_evaluation`` (withheld articles),
``mlperf_parts`` and ``nvidia_sharding``. ``directory`` writes the output directory, and ``manifest``
describes its contents.
"""
