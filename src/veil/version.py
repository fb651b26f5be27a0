"""The version of veil. Tasks of a cluster compare it before they count."""

__all__ = ["VERSION"]

VERSION = "0.2.0"
