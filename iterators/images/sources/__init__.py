"""Record number to bytes: which images there are, and where they lie."""
