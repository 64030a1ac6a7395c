"""Example plugins for real use, written as users write them: see docs/examples."""
