"""Steady load: `--count` calls to `--base` plus a number, `--rate` of them a second, whatever becomes of them.

When the last call has ended it prints what became of them, and waits for the end of its input.
"""

import argparse
import collections
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import console
import requests
import web


class Load:
    def __init__(self, options):
        self.options = options
        self.session = web.client(options.attempts)
        self.lock = threading.Lock()
        self.started = collections.Counter()
        self.outcomes = collections.Counter()
        self.milliseconds = []
        self.late = 0.0

    def call(self, number, due):
        began = time.time()
        with self.lock:
            self.started[int(began - self.options.zero)] += 1
            self.late = max(self.late, began - due)
        try:
            outcome = str(self.session.get(f"{self.options.base}{number}", timeout=30).status_code)
        except requests.RequestException as error:
            outcome = type(error).__name__
        with self.lock:
            self.outcomes[outcome] += 1
            self.milliseconds.append((time.time() - began) * 1000)

    def run(self):
        with ThreadPoolExecutor(max_workers=self.options.workers) as pool:
            for index in range(self.options.count):
                due = self.options.zero + index / self.options.rate
                time.sleep(max(0.0, due - time.time()))
                pool.submit(self.call, self.options.first + index, due)

    def report(self):
        return {
            "calls": self.options.count,
            "started": [self.started[second] for second in range(max(self.started) + 1)],
            "outcomes": dict(self.outcomes),
            "median_ms": statistics.median(self.milliseconds),
            "worst_ms": max(self.milliseconds),
            "late_ms": self.late * 1000,
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--attempts", type=int, required=True)
    parser.add_argument("--workers", type=int, default=512)
    parser.add_argument("--zero", type=float, default=None)
    options = parser.parse_args()
    if options.zero is None:
        options.zero = time.time()
    console.obey_aside({})
    load = Load(options)
    load.run()
    console.say(**load.report())
    threading.Event().wait()


main()
