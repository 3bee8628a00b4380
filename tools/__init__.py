"""Console commands over the library: `im2rec` and `rec2idx`; installed as ``recordio.tools``."""
