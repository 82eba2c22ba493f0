"""The list of what Genba is made of: it is whole, valid, and the same for everybody."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release import sbom
from release.locks import ROOT, Locked, NotALock, read

LOCK = read(ROOT / "requirements.lock")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sbom.PLACE.read_text("utf-8"))
    return found


def test_the_list_of_what_is_inside_is_what_is_locked_today() -> None:
    assert sbom.PLACE.read_text("utf-8") == sbom.written(LOCK), "make sbom"


def test_it_is_valid_by_the_schema_of_cyclonedx() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom.PLACE.read_text("utf-8")) is None


def test_every_locked_package_is_in_it_with_hashes_licence_and_address(document: dict[str, Any]) -> None:
    listed = {part["purl"]: part for part in document["components"] if part["purl"].startswith("pkg:pypi/")}
    assert set(listed) == {package.purl for package in LOCK}
    for package in LOCK:
        part = listed[package.purl]
        assert {one["content"] for one in part["hashes"]} == set(package.hashes)
        assert part["licenses"], package.name


def test_dependencies_are_reported(document: dict[str, Any]) -> None:
    edges = {one["ref"]: set(one.get("dependsOn", ())) for one in document["dependencies"]}
    ours = document["metadata"]["component"]["bom-ref"]
    for package in LOCK:
        needed_by = {ref for ref, needs in edges.items() if package.purl in needs}
        names = {re.sub(r"pkg:pypi/(.*)@.*", r"\1", ref) for ref in needed_by}
        assert names == set(package.wanted_by), package.name
    assert {script.purl for script in sbom.CARRIED} <= edges[ours]


def test_every_script_that_the_dashboard_carries_is_in_it_with_its_hash(document: dict[str, Any]) -> None:
    listed = {
        file["name"]: file["hashes"][0]["content"]
        for part in document["components"]
        if part["purl"].startswith("pkg:npm/")
        for file in part["components"]
    }
    carried = {path.name: path for path in sbom.VENDOR.iterdir() if path.suffix in {".js", ".css"}}
    assert listed == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in carried.items()}
    licences = (sbom.VENDOR / "LICENSES.txt").read_text("utf-8")
    assert [one for one in sbom.CARRIED if f"== {one.name}-{one.version}\n" not in licences] == []


def test_it_names_no_time_no_machine_and_no_index() -> None:
    text = sbom.PLACE.read_text("utf-8")
    assert "timestamp" not in text
    assert str(ROOT) not in text
    assert set(re.findall(r"\w+://[^\"]+", text)) == {"http://cyclonedx.org/schema/bom-1.6.schema.json"}


def test_another_content_has_another_number() -> None:
    fewer = json.loads(sbom.written(LOCK[1:]))
    assert fewer["serialNumber"] != json.loads(sbom.written(LOCK))["serialNumber"]


def test_a_package_without_a_licence_is_no_part_of_it() -> None:
    unknown = Locked("editables-of-nobody", "1", "", ("0" * 64,), ("genba",))
    with pytest.raises((sbom.NoLicence, ModuleNotFoundError)):
        sbom.written([unknown])


def test_a_line_that_no_lock_has_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("click==8.3.1 \\\n    --hash=md5:abc\n")
    with pytest.raises(NotALock, match="md5"):
        read(lock)
