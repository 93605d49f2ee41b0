"""Extract a dump on several machines: workers read different byte ranges, and the results are joined."""
