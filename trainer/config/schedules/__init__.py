"""Optimiser presets and learning-rate schedules: a module for each program that they come from."""
