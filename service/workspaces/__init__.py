"""skill-creator workspaces: read a folder of runs, write one that its aggregator and viewer open as they are."""
