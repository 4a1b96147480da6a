"""Starts a program as systemd does with StandardOutput=append:FILE, StandardError=append:FILE.

service.py FILE PROGRAM [ARGUMENT...]

systemd itself can't run where the tests do. What it does to a file is this much: it opens it with
these flags and this mode, and makes it the program's standard output and error.
"""
import os
import sys

file, *command = sys.argv[1:]
flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC
fd = os.open(file, flags, 0o666)
os.dup2(fd, 1)
os.dup2(fd, 2)
os.execvp(command[0], command)
