"""Write the SBOM: `make sbom` writes `release/genba.cdx.json`, CycloneDX 1.6, which the wheel contains.

It depends only on the lock, the scripts of the dashboard, and the declared licences, so it is reproducible.
"""

import hashlib
import importlib.metadata
import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseAcknowledgement
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

import genba
from release.locks import ROOT, Locked, read

PLACE = ROOT / "release" / "genba.cdx.json"
VENDOR = ROOT / "src" / "genba" / "entrypoints" / "web" / "static" / "vendor"
NAMESPACE = uuid.UUID("5f0a3c52-6a5d-5b0e-9d0c-7f6a1d2f9b11")

LICENCES = {
    "agent-client-protocol": "Apache-2.0",
    "detect-secrets": "Apache-2.0",
    "httpx2-jsfetch": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "jsonpath-rfc9535": "MIT",
    "pywin32": "PSF-2.0",
}
"""Packages that declare no licence, or that are not installed on every machine."""

CLASSIFIED = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}


class Carried(msgspec.Struct, frozen=True):
    """An npm package with files in the dashboard."""

    name: str
    version: str
    licence: str
    files: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:npm/{self.name}@{self.version}"


CARRIED = (
    Carried("cytoscape", "3.34.4", "MIT", ("cytoscape-3.34.4.min.js",)),
    Carried("htmx-ext-sse", "2.2.4", "0BSD", ("htmx-ext-sse-2.2.4.min.js",)),
    Carried("htmx.org", "2.0.11", "0BSD", ("htmx-2.0.11.min.js",)),
    Carried("idiomorph", "0.8.0", "0BSD", ("idiomorph-ext-0.8.0.min.js",)),
    Carried("uplot", "1.6.32", "MIT", ("uplot-1.6.32.iife.min.js", "uplot-1.6.32.min.css")),
)


class NoLicence(Exception):
    """A package that declares no licence: add it to `LICENCES`."""


def licence_of(name: str) -> str:
    """The SPDX expression of a package, from `LICENCES` or its metadata. Raises NoLicence."""
    if name in LICENCES:
        return LICENCES[name]
    metadata = importlib.metadata.metadata(name)
    classified = {CLASSIFIED[kind] for kind in metadata.get_all("Classifier", ()) if kind in CLASSIFIED}
    stated = [metadata[key] for key in ("License-Expression", "License") if key in metadata]
    declared = "".join(stated[:1] if "License-Expression" in metadata else classified or stated)
    if len(classified) > 1 or not declared or "\n" in declared or declared == "UNKNOWN":
        raise NoLicence(f"{name} declares no licence: add it to LICENCES in release/sbom.py")
    return declared


def written(lock: Sequence[Locked], carried: Sequence[Carried] = CARRIED, vendor: Path = VENDOR) -> str:
    """The text of the SBOM; deterministic."""
    bom = Bom()
    ours = Component(
        name="genba",
        version=genba.__version__,
        type=ComponentType.APPLICATION,
        purl=PackageURL.from_string(f"pkg:pypi/genba@{genba.__version__}"),
        bom_ref=f"pkg:pypi/genba@{genba.__version__}",
        licenses=[_licence("Apache-2.0")],
    )
    bom.metadata.component = ours
    packages = [(package, _component(package)) for package in lock]
    scripts = [component for package in carried for component in _scripts(package, vendor)]
    for component in (*(made for _, made in packages), *scripts):
        bom.components.add(component)
    bom.register_dependency(ours, [*(made for package, made in packages if "genba" in package.wanted_by), *scripts])
    for package, made in packages:
        bom.register_dependency(made, [other for wanted, other in packages if package.name in wanted.wanted_by])
    return _deterministic(json.loads(JsonV1Dot6(bom).output_as_string()))


def _component(package: Locked) -> Component:
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        purl=PackageURL.from_string(package.purl),
        bom_ref=BomRef(package.purl),
        licenses=[_licence(licence_of(package.name))],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=content) for content in package.hashes],
        properties=[Property(name="genba:installed-where", value=package.marker)] if package.marker else [],
    )


def _scripts(package: Carried, vendor: Path) -> Iterator[Component]:
    """The npm package, with its files and their hashes."""
    files = []
    for name in package.files:
        digest = hashlib.sha256((vendor / name).read_bytes()).hexdigest()
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest)]
        files.append(Component(name=name, type=ComponentType.FILE, bom_ref=f"{package.purl}#{name}", hashes=hashes))
    yield Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        purl=PackageURL.from_string(package.purl),
        bom_ref=package.purl,
        licenses=[_licence(package.licence)],
        components=files,
    )


def _licence(text: str) -> Any:
    return LicenseFactory().make_from_string(text, license_acknowledgement=LicenseAcknowledgement.DECLARED)


def _deterministic(document: dict[str, Any]) -> str:
    """The document without its time, and with a serial number from its content."""
    document["metadata"].pop("timestamp", None)
    document.pop("serialNumber", None)
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(NAMESPACE, content)}"
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def main() -> int:
    PLACE.write_text(written(read(ROOT / "requirements.lock")), "utf-8")
    print(f"wrote {PLACE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
