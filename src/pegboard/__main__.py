"""`python -m pegboard`."""

from pegboard.cli import main

main()
