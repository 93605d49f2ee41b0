"""Optimisers' settings and learning-rate schedules, a module for each program that they are from."""
