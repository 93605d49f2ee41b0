"""Choosing and setting up one of Beam's runners, and the worker processes of a run on this machine."""
