"""Page and picture of a run: curves beside what a guess reaches, evaluations, speed, settings, data."""
