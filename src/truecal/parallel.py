"""One pool of processes and one way to tell progress."""
