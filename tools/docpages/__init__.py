"""What `tools/docs.py` builds the generated parts of the documentation from."""
