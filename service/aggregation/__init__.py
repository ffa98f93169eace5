"""What many runs say together: benchmark, items, feedback, statistics, gates. Pure rules, streaming over runs."""
