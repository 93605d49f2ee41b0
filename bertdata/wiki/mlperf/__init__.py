"""Readable version of WikiExtractor at commit 3162bb6, which MLPerf uses.

The C++ kernel in bertdata/_native/wiki/mlperf gives the same bytes. ``article`` lists the steps in order. The
properties of characters are those of Unicode 11.0 (Python 3.7) in every version of Python.
"""

from bertdata.wiki.mlperf.mlperf_extractor import MlperfExtractor

__all__ = ["MlperfExtractor"]
