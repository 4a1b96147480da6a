"""An independent client of protocol.Journal, which drives a running broker.

    client.py journals HOST:PORT FILE_ROOT
    client.py tokens HOST:PORT KEY

Prints a line for each check that passed and a last one that counts them; exits with 1 and a trace
at the first that fails.
"""

import sys
from functools import partial
from pathlib import Path

from authorization import tokens_are_checked
from journals import CHECKS
from wire import Broker


def main(arguments):
    match arguments:
        case ["journals", address, root]:
            broker = Broker(address)
            checks = [(check.__name__, partial(check, broker, Path(root))) for check in CHECKS]
        case ["tokens", address, key]:
            checks = [("tokens", partial(tokens_are_checked, address, key))]
        case _:
            sys.exit(__doc__)
    for name, check in checks:
        check()
        print(f"passed {name}", flush=True)
    print(f"interop: {len(checks)} checks passed")


if __name__ == "__main__":
    main(sys.argv[1:])
