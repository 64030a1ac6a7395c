"""The modules that a plugin may import besides the cache: interfaces, statuses, results, state."""
