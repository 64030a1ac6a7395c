"""What each change that a watch reports means for the cache and the queue.

Also which kinds are watched, and the search for changes that no watch has reported. How a watch is
kept up belongs to :mod:`scheduler.informers`.
"""
