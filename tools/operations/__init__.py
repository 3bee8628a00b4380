"""Commands over whole packs: one row of a table for each."""
