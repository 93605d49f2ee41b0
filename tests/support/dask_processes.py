"""A running Dask cluster, such as a user may already have."""

from distributed import LocalCluster


def worker_processes() -> LocalCluster:
    """Start a scheduler and two worker processes with one thread each, on free ports and without logs."""
    return LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=60,
    )
