"""The admission webhook: bytes become a review, the gates decide, one response goes back."""
