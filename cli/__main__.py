"""`python -m cli` is `assay`."""

from cli.main import main

main()
