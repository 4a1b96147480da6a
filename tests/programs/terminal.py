"""Runs a command on a terminal of its own and copies what it shows to standard output.

terminal.py COMMAND [ARGUMENT ...]
"""
import os
import pty
import sys

os.environ["TERM"] = "dumb"
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], stdin_read=lambda fd: os.read(fd, 1))))
