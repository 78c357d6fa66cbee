"""The console of a demo program: commands arrive on standard input, one line of JSON answers each.

End of input ends the program, so that none outlives the demo.
"""

import json
import os
import sys
import threading


def say(**fields):
    """Prints one line of JSON."""
    print(json.dumps(fields), flush=True)


def obey(commands):
    """Answers commands until the input ends, then ends the process. `commands`: word -> function of a dict."""
    for line in sys.stdin:
        say(**commands[line.strip()]())
    # Threads that still wait in a call must not keep the program alive.
    os._exit(0)


def obey_aside(commands):
    """As `obey`, beside the program's own work."""
    threading.Thread(target=obey, args=(commands,), daemon=True).start()
