"""Helpers that know nothing of privacy: numbers, JSON documents, files, limits, processes and texts of messages."""
