"""Mechanisms for answers that are given again and again."""
