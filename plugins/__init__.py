"""What is allowed and what is better: pure decisions over the cache's snapshot."""
