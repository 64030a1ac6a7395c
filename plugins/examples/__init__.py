"""Plugins of real use, written as a user writes them: see docs/examples."""
