"""Floor 3: files and arrays as iterables of batches, with the names and protocol of MXNet."""
