"""Data on its way between stages and machines: spill files, files bundled with a job."""
