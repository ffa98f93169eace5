"""What Assay does, whoever asks."""
