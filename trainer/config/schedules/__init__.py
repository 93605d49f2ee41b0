"""Optimiser presets and learning-rate schedules, with a module for each program that they come from."""
