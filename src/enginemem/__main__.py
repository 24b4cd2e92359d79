"""`python -m enginemem` is the command line."""

from enginemem.cli import main

main(prog_name="enginemem")
