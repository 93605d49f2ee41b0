"""Logs of a run: the terminal, tables, files in other programs' formats, and charts.

After each update the training loop gives an ``UpdateRecord`` to ``reporter.Reporter``. The Reporter averages
the records of several updates into a row and passes the row to every ``Logger``.
"""
