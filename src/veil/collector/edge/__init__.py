"""Connections and reports, from the socket to the commit."""
