"""Reads the option table of vLLM releases out of their published sources."""
