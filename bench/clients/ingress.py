"""Calls to Restate's ingress with the SDK's own HTTP client: `python -m bench.clients.ingress URL`."""

import asyncio
import sys
from contextlib import nullcontext
from uuid import uuid4

from pyreqwest.client import ClientBuilder

from bench.failure import BadAnswer
from bench.turns import serve


async def main(url: str) -> None:
    """Take turns; every call has an idempotency key of its own."""
    process = uuid4().hex
    async with ClientBuilder().no_proxy().build() as client:

        async def call(number: int) -> None:
            building = client.post(url).header("idempotency-key", f"{process}-{number}")
            answer = await building.body_json(number).build().send()
            body = await answer.bytes()
            if answer.status != 200:
                raise BadAnswer(f"Restate answered {answer.status}: {bytes(body).decode(errors='replace')}")

        await serve(lambda _: nullcontext(call), {})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
