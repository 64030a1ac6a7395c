"""The plugins: they filter and score nodes as pure functions of the cache's snapshot."""
