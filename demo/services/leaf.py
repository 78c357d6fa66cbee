"""A service that calls nobody: the store of the chain, the dependency of the storm.

It answers 200 while it is well and 503 to everything while it is told to fail. It counts what it receives: per
target, and per second since `--zero`, first attempts and repeated ones apart. With `--hiccup N` every Nth new
target is answered 503 once, also while it is well.
"""

import argparse
import collections
import threading
import time

import console
import web


class Leaf:
    def __init__(self, zero, hiccup):
        self.zero = zero
        self.hiccup = hiccup
        self.failing = False
        self.lock = threading.Lock()
        self.attempts = {}
        self.hiccups = set()
        self.first = collections.Counter()
        self.repeated = collections.Counter()

    def answer(self, target):
        second = int(time.time() - self.zero)
        with self.lock:
            number = self.attempts[target] = self.attempts.get(target, 0) + 1
            (self.first if number == 1 else self.repeated)[second] += 1
            failing = self.failing
            if not failing and number == 1 and self.hiccup and len(self.attempts) % self.hiccup == 0:
                self.hiccups.add(target)
                failing = True
        return (503, b"the database is away\n") if failing else (200, b"ok\n")

    def fail(self):
        self.failing = True
        return {}

    def ok(self):
        self.failing = False
        return {}

    def count(self):
        with self.lock:
            return {"requests": sum(self.attempts.values())}

    def report(self):
        with self.lock:
            last = max([0, *self.first, *self.repeated])
            return {
                "attempts": dict(self.attempts),
                "hiccups": sorted(self.hiccups),
                "first": [self.first[second] for second in range(last + 1)],
                "repeated": [self.repeated[second] for second in range(last + 1)],
            }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--zero", type=float, default=time.time())
    parser.add_argument("--hiccup", type=int, default=0)
    options = parser.parse_args()
    leaf = Leaf(options.zero, options.hiccup)
    server = web.server(leaf.answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    console.say(port=server.server_port)
    console.obey({"fail": leaf.fail, "ok": leaf.ok, "count": leaf.count, "report": leaf.report})


main()
