"""Images that a CUDA device decodes and resamples, whole batches at once."""
