"""Floor 2: one encoded record becomes one sample of a batch, without the GIL."""
