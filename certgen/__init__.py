"""The webhook's CA and serving certificate: certgen creates, renews and publishes them without failed admissions.

One Secret is the source of truth. All replicas reconcile it; resourceVersions prevent lost updates. Pure functions in
`plan` decide what the Secret must contain, `reconciler` reads and writes. Each step can be repeated or interrupted.

How certgen replaces a CA without a failed admission:

1. It stores the new CA beside the old one. The new CA signs nothing yet.
2. It writes both into the `caBundle` of all webhook configurations.
3. When all of them have contained the new CA for the settling time, all API servers know it. Then the new CA signs the
   serving certificate, and certgen deletes the old CA's key.
4. The gatekeepers load the new certificate when they see it. API servers still trust the one before.
5. certgen removes the old CA from the bundles when it expires. No certificate is valid longer than the CA that signed
it.
"""
