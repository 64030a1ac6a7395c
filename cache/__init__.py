"""The state of the cluster: pure data without network access, waiting or a clock of its own."""
