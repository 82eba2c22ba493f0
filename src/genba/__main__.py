"""`python -m genba` is the same door as `genba`."""

from genba.entrypoints.cli.main import main

main()
