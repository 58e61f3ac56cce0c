"""`capcheck schema`: the JSON Schema that editors and generators use."""

from __future__ import annotations

import argparse
import json
import sys

from capcheck.cli import session_of
from capcheck.schema import deployment_schema
from capcheck.schemas_home import read_schema


def run(given: argparse.Namespace) -> int:
    """Print it; the deployment's with every plugin's own parts."""
    if given.name == "deployment":
        schema = deployment_schema(session_of(given).plugins.extensions().values())
    else:
        schema = read_schema(given.name)
    json.dump(schema, sys.stdout, indent=2, ensure_ascii=False)
    print()
    return 0
