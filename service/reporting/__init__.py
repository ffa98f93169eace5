"""The report: one self-contained page that says what a batch showed, without scripts and without a network."""
