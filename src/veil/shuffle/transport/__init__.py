"""Connections between parties: certificates, frames, and admission."""
