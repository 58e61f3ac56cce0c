"""Placeholder while under way."""
