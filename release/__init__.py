"""What is done before Genba is given to others: what is in it is listed, audited, and built twice to the same bytes.

Nothing here is part of the package. `make sbom`, `make audit`, `make wheel` and `make dist` call it.
"""
