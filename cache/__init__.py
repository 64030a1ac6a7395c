"""What is known of the cluster: pure state, no network, no waiting, no clock of its own."""
