"""Ways to execute a case."""
