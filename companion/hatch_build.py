"""The companion needs the product of its own version, and what draws its figures and writes its pages."""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SameVersion(MetadataHookInterface):
    """Fills in the dependencies, which name the version."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = [f"normalfan[plot,report]=={metadata['version']}"]
