"""The collector: a service that takes reports, stores each exactly once, and answers analysts.

It needs `veil-ldp[collector]`; docs/collector/ describes it.

- `serve` runs the process, `service` is what all requests share, and `settings` reads its settings.
- `keys_and_tokens` has the signing key and the tokens; `problems` turns errors into HTTP refusals.
- `http` has the routes, `edge` the connections and the commit of reports, `store` the databases, `surveys` what is
  asked and answered, and `monitoring` health, logs and metrics.
"""
