"""What is done: watching, queueing, deciding in order, binding, reporting."""
