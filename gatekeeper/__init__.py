"""The admission webhook: it decodes each review, asks the handlers and sends one response."""
