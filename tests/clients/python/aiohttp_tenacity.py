"""aiohttp with tenacity."""

import asyncio
import json
import sys

import aiohttp
import tenacity


class Failed(Exception):
    """The answer was a 5xx."""


async def pieces():
    for _ in range(20):
        yield b"c" * 1000


BODIES = {
    "get": lambda: {},
    "post": lambda: {"json": {"order": 1}},
    "upload": lambda: {"data": b"u" * 5_000_000},
    "chunked": lambda: {"data": pieces()},
    "expect": lambda: {"data": b"e" * 100_000, "expect100": True},
}


async def call(session, attempts, kind, url):
    line = {"status": None, "retry_after": None, "denied": None, "error": None}

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(attempts), wait=tenacity.wait_fixed(0.01), reraise=True
    )
    async def attempt():
        method = "GET" if kind == "get" else "POST"
        async with session.request(method, url, **BODIES[kind]()) as answer:
            await answer.read()
            line["status"] = answer.status
            line["retry_after"] = answer.headers.get("retry-after")
            line["denied"] = answer.headers.get("x-retry-denied")
            if answer.status >= 500:
                raise Failed()

    try:
        await attempt()
    except Failed:
        pass
    except (aiohttp.ClientError, asyncio.TimeoutError) as error:
        line["error"] = repr(error)
    print(json.dumps(line), flush=True)


async def main():
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for kind, url in zip(sys.argv[2::2], sys.argv[3::2]):
            await call(session, int(sys.argv[1]), kind, url)


asyncio.run(main())
