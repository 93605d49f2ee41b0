"""Logs of a run: terminal, tables, files of other services, charts."""
