"""A service in the middle of the chain: each request it receives makes one call to the service behind it.

It counts the requests it received per target. Every call it makes carries an `x-request-id` of its own, which
the client library repeats on each attempt.
"""

import argparse
import collections
import threading
import uuid

import console
import requests
import web


class Relay:
    def __init__(self, upstream, attempts):
        self.upstream = upstream
        self.session = web.client(attempts)
        self.lock = threading.Lock()
        self.received = collections.Counter()

    def answer(self, target):
        with self.lock:
            self.received[target] += 1
        call = {"x-request-id": uuid.uuid4().hex}
        try:
            answer = self.session.get(self.upstream + target, headers=call, timeout=30)
        except requests.RequestException as error:
            return 502, f"{type(error).__name__}\n".encode()
        if answer.status_code >= 500:
            return 503, b"the service behind this one failed\n"
        return 200, answer.content

    def report(self):
        with self.lock:
            return {"attempts": dict(self.received)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--attempts", type=int, required=True)
    options = parser.parse_args()
    relay = Relay(options.upstream, options.attempts)
    server = web.server(relay.answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    console.say(port=server.server_port)
    console.obey({"report": relay.report})


main()
