"""The floor server: the least that an admission webhook does. It decodes each review with orjson, and allows it.

An API server accepts a response only with the uid of the review. So every webhook decodes the review.

python -m bench.harness.floor PORT CERTIFICATE KEY
"""

import asyncio
import ssl
import sys

import orjson
import uvloop
from aiohttp import web


async def _answer(request: web.Request) -> web.Response:
    review = orjson.loads(await request.read())
    review["response"] = {"uid": review.pop("request")["uid"], "allowed": True}
    return web.Response(body=orjson.dumps(review), content_type="application/json")


async def _serve(port: int, certificate: str, key: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    app = web.Application(client_max_size=8 * 2**20)
    app.router.add_post("/{path}", _answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
