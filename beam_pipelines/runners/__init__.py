"""Runners, and the worker processes of local ones."""
