"""The way of reports from the socket to the commit.

- `protocol` has connections with their limits, and `limits` those of addresses and bodies.
- `ingest` takes most requests with reports past the routes; `decoding` checks and decodes what they send.
- `commit` stores the reports of many requests in one transaction.
"""
