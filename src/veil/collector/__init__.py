"""The collector: a service that takes reports, keeps each exactly once, and answers analysts.

It needs `veil-ldp[collector]`. `serve` runs it, `app` is the ASGI application, `store` the contract of its databases.
docs/collector/ has the pages.
"""
