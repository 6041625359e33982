"""CA and serving certificate of the webhook: created, renewed, published to the API server, never a request lost.

One Secret is the only truth; every replica keeps it, optimistic concurrency decides between them. What has to
be done is planned by pure functions (`plan`), done by `reconciler`, and every step is safe to be done twice or cut off.

How a new CA takes over without a failed admission:

1. It is stored beside the old one. Nothing is signed by it yet.
2. Both are published in every webhook configuration's `caBundle`.
3. Once all of them have held it for the settling time, so that every API server knows it, it signs the serving
   certificate, and the old CA's key is thrown away.
4. The gatekeepers serve the new certificate when they see it; the one before is still good for all API servers.
5. The old CA leaves the bundles when it expires. Nothing that it signed is valid for longer than itself.
"""
