"""The web server and the HTTP client that the demo's services share, as a company's services do."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry


class Server(ThreadingHTTPServer):
    """A thread per connection; a client that goes away is no news."""

    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception() if hasattr(sys, "exception") else sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def server(answer):
    """A server on a free port of this host. `answer`: function of the target, gives status and body."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        # Buffered, so that head and body leave in one piece.
        wbufsize = -1

        def do_GET(self):
            status, body = answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Server(("127.0.0.1", 0), Handler)


def client(attempts):
    """An HTTP session that makes up to `attempts` attempts at a call that is answered by a server error."""
    retry = Retry(
        total=attempts - 1,
        status_forcelist=[500, 502, 503, 504],
        backoff_factor=0.1,
        raise_on_status=False,
    )
    session = requests.Session()
    # Nothing of the environment (proxies, .netrc) is for calls to this host.
    session.trust_env = False
    session.mount("http://", HTTPAdapter(max_retries=retry, pool_maxsize=256))
    return session
