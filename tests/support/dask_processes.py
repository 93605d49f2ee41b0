"""A running Dask cluster, as a user may have one."""

from distributed import LocalCluster


def worker_processes() -> LocalCluster:
    """A scheduler with two worker processes of one thread each, at any free ports, silent."""
    return LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=60,
    )
