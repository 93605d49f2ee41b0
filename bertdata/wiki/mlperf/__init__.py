"""Readable specification of WikiExtractor at commit 3162bb6, the version that MLPerf pins.

The kernel in bertdata/_native/wiki/mlperf produces the same bytes. ``article`` lists the steps in order.
Character properties follow Unicode 11.0 (Python 3.7), whatever Python runs.
"""

from bertdata.wiki.mlperf.mlperf_extractor import MlperfExtractor

__all__ = ["MlperfExtractor"]
