"""The version of veil. Tasks of a cluster compare it before they count."""

VERSION = "0.2.0"
