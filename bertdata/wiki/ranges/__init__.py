"""Extracts a dump on several machines: workers read different byte ranges of it, and the results are
joined.
"""
