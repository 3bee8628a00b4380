"""Numbers in text to arrays, with threads: CSV and LibSVM."""
