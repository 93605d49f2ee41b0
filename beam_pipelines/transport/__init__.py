"""Transport of data between stages and machines: temporary files, and files that are sent with a job."""
