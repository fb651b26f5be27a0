"""The HTTP interface: routes, errors and the OpenAPI description."""
