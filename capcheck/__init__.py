"""capcheck: a linter for LLM inference deployments.

The names below, and the modules in PUBLIC_MODULES, are the public API for plugins; everything
else may change. Physics lives in `capcheck.physics`, the test kit in `capcheck.testing`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which takes as long to import as all else at start-up

__version__ = "0.1.0"
API_VERSION = 1
PUBLIC_MODULES = (
    "accounts", "architecture", "curves", "deployment", "embedded", "findings", "gguf_header",
    "hardware", "launch", "measure", "objectives", "option_file", "option_reader", "options",
    "packing", "physics", "printable", "quantity", "quantization", "report", "source", "terms",
    "testing", "unrendered", "values", "words", "workload",
)  # fmt: skip

_HOMES = {
    "accounts": ("Account", "Share"),
    "curves": ("Point", "curve"),
    "hookspecs": ("hookimpl",),
    "architecture": (
        "Architecture", "Cache", "Layer", "Mixer", "Part", "Rope", "Tensor", "Vision",
    ),
    "case": ("Case", "Estimate", "Model", "Result", "estimate"),
    "catalogue": ("Catalogue", "CatalogueError", "Match", "Shelf"),
    "deployment": ("ARGS", "ENV", "Deployment", "Draft", "LinkTo", "flatten", "places_of"),
    "engine": (
        "Change", "Edit", "Engine", "Image", "KvLayout", "Launch", "Ledger", "Line",
        "MemoryPolicy", "OTHER", "Plan", "Platform", "Release", "Site", "Support", "blank_plan",
    ),
    "findings": ("Fail", "Finding", "Margin", "Pass", "Rule", "Skip", "Words", "rule"),
    "fleet": ("Fleet", "FleetResult"),
    "formats": ("Desk", "Document", "Format"),
    "hardware": ("Accelerator", "Link", "read_accelerator", "share_of"),
    "models": ("FoundModel", "ModelSource"),
    "options": ("Option", "OptionTable"),
    "packing": ("PackingSource",),
    "quantity": ("GIB", "KIB", "MIB", "Band"),
    "quantization": ("Scheme",),
    "report": ("Look", "Report", "ReportFormat", "summary_line"),
    "schema": ("BadExtension", "Extension"),
    "terms": ("Terms",),
    "values": (
        "Origin", "Place", "Unknown", "Value", "alternatives", "default", "derived", "unknown",
        "written",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from typing import Any

    from capcheck.accounts import Account as Account
    from capcheck.accounts import Share as Share
    from capcheck.architecture import Architecture as Architecture
    from capcheck.architecture import Cache as Cache
    from capcheck.architecture import Layer as Layer
    from capcheck.architecture import Mixer as Mixer
    from capcheck.architecture import Part as Part
    from capcheck.architecture import Rope as Rope
    from capcheck.architecture import Tensor as Tensor
    from capcheck.architecture import Vision as Vision
    from capcheck.case import Case as Case
    from capcheck.case import Estimate as Estimate
    from capcheck.case import Model as Model
    from capcheck.case import Result as Result
    from capcheck.case import estimate as estimate
    from capcheck.catalogue import Catalogue as Catalogue
    from capcheck.catalogue import CatalogueError as CatalogueError
    from capcheck.catalogue import Match as Match
    from capcheck.catalogue import Shelf as Shelf
    from capcheck.curves import Point as Point
    from capcheck.curves import curve as curve
    from capcheck.deployment import ARGS as ARGS
    from capcheck.deployment import ENV as ENV
    from capcheck.deployment import Deployment as Deployment
    from capcheck.deployment import Draft as Draft
    from capcheck.deployment import LinkTo as LinkTo
    from capcheck.deployment import flatten as flatten
    from capcheck.deployment import places_of as places_of
    from capcheck.engine import OTHER as OTHER
    from capcheck.engine import Change as Change
    from capcheck.engine import Edit as Edit
    from capcheck.engine import Engine as Engine
    from capcheck.engine import Image as Image
    from capcheck.engine import KvLayout as KvLayout
    from capcheck.engine import Launch as Launch
    from capcheck.engine import Ledger as Ledger
    from capcheck.engine import Line as Line
    from capcheck.engine import MemoryPolicy as MemoryPolicy
    from capcheck.engine import Plan as Plan
    from capcheck.engine import Platform as Platform
    from capcheck.engine import Release as Release
    from capcheck.engine import Site as Site
    from capcheck.engine import Support as Support
    from capcheck.engine import blank_plan as blank_plan
    from capcheck.findings import Fail as Fail
    from capcheck.findings import Finding as Finding
    from capcheck.findings import Margin as Margin
    from capcheck.findings import Pass as Pass
    from capcheck.findings import Rule as Rule
    from capcheck.findings import Skip as Skip
    from capcheck.findings import Words as Words
    from capcheck.findings import rule as rule
    from capcheck.fleet import Fleet as Fleet
    from capcheck.fleet import FleetResult as FleetResult
    from capcheck.formats import Desk as Desk
    from capcheck.formats import Document as Document
    from capcheck.formats import Format as Format
    from capcheck.hardware import Accelerator as Accelerator
    from capcheck.hardware import Link as Link
    from capcheck.hardware import read_accelerator as read_accelerator
    from capcheck.hardware import share_of as share_of
    from capcheck.hookspecs import hookimpl as hookimpl
    from capcheck.models import FoundModel as FoundModel
    from capcheck.models import ModelSource as ModelSource
    from capcheck.options import Option as Option
    from capcheck.options import OptionTable as OptionTable
    from capcheck.packing import PackingSource as PackingSource
    from capcheck.quantity import GIB as GIB
    from capcheck.quantity import KIB as KIB
    from capcheck.quantity import MIB as MIB
    from capcheck.quantity import Band as Band
    from capcheck.quantization import Scheme as Scheme
    from capcheck.report import Look as Look
    from capcheck.report import Report as Report
    from capcheck.report import ReportFormat as ReportFormat
    from capcheck.report import summary_line as summary_line
    from capcheck.schema import BadExtension as BadExtension
    from capcheck.schema import Extension as Extension
    from capcheck.terms import Terms as Terms
    from capcheck.values import Origin as Origin
    from capcheck.values import Place as Place
    from capcheck.values import Unknown as Unknown
    from capcheck.values import Value as Value
    from capcheck.values import alternatives as alternatives
    from capcheck.values import default as default
    from capcheck.values import derived as derived
    from capcheck.values import unknown as unknown
    from capcheck.values import written as written

__all__ = sorted([*_HOME_OF, "API_VERSION", "PUBLIC_MODULES", "__version__"])


def __getattr__(name: str) -> Any:
    """Import a public name where it is first used: `capcheck --version` stays quick."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'capcheck' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"capcheck.{home}"), name)
