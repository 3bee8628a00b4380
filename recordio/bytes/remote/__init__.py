"""Objects on servers: opened by URL, read in ranges, and mirrored on the local disk."""
