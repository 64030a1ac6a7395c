"""What a scheduling cycle decides, as immutable values, and which profile decided it.

A leaf that every folder may import. How a decision comes about belongs to :mod:`scheduler.cycle`.
"""
