"""The HTTP interface: the ASGI application (`app`), the routes (`routes`) and their OpenAPI description (`openapi`)."""
