"""The floor server: a minimal aiohttp server with TLS. It reads each body, does not parse it, and returns a constant.

python -m bench.floor PORT CERTIFICATE KEY
"""

import asyncio
import ssl
import sys

import uvloop
from aiohttp import web

_ANSWER = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"0","allowed":true}}'


async def _answer(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=_ANSWER, content_type="application/json")


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
