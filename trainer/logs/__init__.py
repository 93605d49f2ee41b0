"""Logs of a run: the terminal, tables, files of other services, and charts.

``reporter.Reporter`` gets a record per update from the training loop and passes rows of means to every
``Logger``.
"""
