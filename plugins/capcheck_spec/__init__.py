"""capcheck's own deployment files: `apiVersion: capcheck/v1`."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import Format, hookimpl


@hookimpl
def capcheck_formats() -> Iterable[Format]:
    """The reader of capcheck/v1 documents."""
    from capcheck_spec.spec_format import SpecFormat

    return (SpecFormat(),)
