"""requests with urllib3's Retry."""

import json
import sys

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry


class Rewindable:
    """A body of unknown length that urllib3 can start again: requests sends it in chunks."""

    def __init__(self, pieces):
        self.pieces, self.next = pieces, 0

    def tell(self):
        return self.next

    def seek(self, place, whence=0):
        if whence != 0:
            raise OSError("the end is not known")
        self.next = place

    def read(self, _size=-1):
        self.next += 1
        return self.pieces[self.next - 1] if self.next <= len(self.pieces) else b""

    def __iter__(self):
        return iter(self.pieces)


BODIES = {
    "post": lambda: {"json": {"order": 1}},
    "upload": lambda: {"data": b"u" * 5_000_000},
    "chunked": lambda: {"data": Rewindable([b"c" * 1000] * 20)},
    "expect": lambda: {"data": b"e" * 100_000, "headers": {"Expect": "100-continue"}},
}


def call(session, kind, url):
    line = {"status": None, "retry_after": None, "denied": None, "error": None}
    try:
        if kind == "get":
            answer = session.get(url, timeout=20)
        else:
            answer = session.post(url, timeout=20, **BODIES[kind]())
        line["status"] = answer.status_code
        line["retry_after"] = answer.headers.get("retry-after")
        line["denied"] = answer.headers.get("x-retry-denied")
    except requests.RequestException as error:
        line["error"] = repr(error)
    print(json.dumps(line), flush=True)


def main():
    retry = Retry(
        total=int(sys.argv[1]) - 1,
        backoff_factor=0.01,
        status_forcelist=[503],
        allowed_methods=None,
        raise_on_status=False,
        respect_retry_after_header=False,
    )
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", HTTPAdapter(max_retries=retry))
    for kind, url in zip(sys.argv[2::2], sys.argv[3::2]):
        call(session, kind, url)


main()
