"""Console commands over the library: `im2rec`, `rec2idx` and `recordio`.

Installed as ``recordio.tools``.
"""
