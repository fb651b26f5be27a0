"""Connections between parties: certificates, frames, and who may connect."""
