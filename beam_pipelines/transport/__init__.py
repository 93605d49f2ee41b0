"""Transport of data between stages and machines: spill files, and files bundled with a job."""
