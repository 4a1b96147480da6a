"""Appends tagged records to a journal by HTTP PUT, and says which were acknowledged.

http_writer.py HOST:PORT PATH WRITER FIRST

The records are those of src/model.rs. Prints `ack NUMBER` for each success, and at the first
failure `fail NUMBER CAUSE`, and ends with 1.
"""
import http.client
import itertools
import os
import sys

address, path, writer, first = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
FILL = 100


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def record(number):
    filler = chr(ord("a") + (writer * 7 + number) % 26)
    return (f"<{writer} {number} {FILL}>" + filler * FILL + "\n").encode()


connection = http.client.HTTPConnection(address, timeout=30)
for number in itertools.count(first):
    try:
        connection.request("PUT", path, record(number))
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException) as error:
        say("fail", number, type(error).__name__)
        sys.exit(1)
    if answer.status not in (200, 204):
        say("fail", number, answer.status)
        sys.exit(1)
    say("ack", number)
