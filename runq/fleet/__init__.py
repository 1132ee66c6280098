"""A night on several machines: the head hands out whole entries, Dask.distributed carries them and what comes back."""
