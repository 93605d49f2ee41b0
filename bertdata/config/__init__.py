"""Settings of datasets: how they are declared and checked, and the named recipes (sets of settings) and
dialects.
"""
