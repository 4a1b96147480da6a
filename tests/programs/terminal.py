"""Runs a command on a terminal of its own and copies what it shows to standard output.

terminal.py COMMAND [ARGUMENT ...]
"""
import os
import pty
import sys

os.environ["TERM"] = "dumb"
# It dies with this one: less takes no notice of a terminal that is gone, and spins.
command = ["setpriv", "--pdeathsig", "KILL", *sys.argv[1:]]
sys.exit(os.waitstatus_to_exitcode(pty.spawn(command, stdin_read=lambda fd: os.read(fd, 1))))
