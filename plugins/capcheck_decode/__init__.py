"""Decode: time per output token, and whether the offered load is served at all."""
