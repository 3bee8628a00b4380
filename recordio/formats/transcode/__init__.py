"""JPEG to JPEG without loss, so that it can be decoded in parts."""
