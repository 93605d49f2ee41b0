"""MLPerf's extractor: the readable specification of WikiExtractor at commit 3162bb6, as MLPerf ran it.

The kernel in bertdata/_native/wiki/mlperf gives the same bytes. ``article`` lists the steps in order.
Characters have the properties of Unicode 11.0, as on Python 3.7, whatever Python runs this.
"""

from bertdata.wiki.mlperf.mlperf_extractor import MlperfExtractor

__all__ = ["MlperfExtractor"]
