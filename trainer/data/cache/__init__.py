"""Cache of remote data files on a local disk, which the workers and runs of a machine share.

``folder`` is the directory on the disk. ``forecast`` says when a machine's workers need which file. With it,
``shard_cache`` fetches files before they are needed, and drops those that are needed latest.
"""
