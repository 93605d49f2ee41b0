"""Settings of datasets: how they are declared and checked, plus the named recipes and dialects."""
