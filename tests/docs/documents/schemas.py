"""Validates manifests against the schemas of our kinds, similar to the API server.

The schemas come from xrds/ and package/. As for kubectl, an unknown field is an error.
Of the CEL rules, only those that stand for a pattern are evaluated here; the cluster
suites test the others.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import yaml

from .markdown import ROOT

Schema = dict[str, Any]

# The fields that Crossplane 2.4 adds to the spec of composites and claims.
_MACHINERY = {
    "compositionRef": {"type": "object"},
    "compositionSelector": {"type": "object"},
    "compositionRevisionRef": {"type": "object"},
    "compositionRevisionSelector": {"type": "object"},
    "compositionUpdatePolicy": {"enum": ["Automatic", "Manual"]},
    "compositeDeletePolicy": {"enum": ["Background", "Foreground"]},
    "writeConnectionSecretToRef": {"type": "object"},
    "resourceRef": {"type": "object"},
    "crossplane": {"type": "object"},
}
# xtask/src/codegen/patterns.rs writes these rules, because they have a message.
_PATTERN = re.compile(r"self\.matches\(r'(.*)'\)")
_OBJECT = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "required": ["name"]},
}


@cache
def ours() -> dict[tuple[str, str], Schema]:
    """The schemas of our kinds, by apiVersion and kind."""
    found: dict[tuple[str, str], Schema] = {}
    for folder in ("xrds", "package"):
        for file in sorted((ROOT / folder).rglob("*.yaml")):
            for document in yaml.safe_load_all(file.read_text()):
                found.update(_of_definition(document))
    return found


def _of_definition(document: Any) -> Iterator[tuple[tuple[str, str], Schema]]:
    definition = document.get("kind", "")
    if definition not in ("CompositeResourceDefinition", "CustomResourceDefinition"):
        return
    spec = document["spec"]
    kinds = [spec["names"]["kind"]]
    if "claimNames" in spec:
        kinds.append(spec["claimNames"]["kind"])
    is_composite = definition == "CompositeResourceDefinition"
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        # A function's input is no object of the API server, so it has no name.
        is_input = spec["group"].startswith("workspace.fn.")
        for kind in kinds:
            key = (f"{spec['group']}/{version['name']}", kind)
            yield key, _closed(schema, is_composite, is_input)


def _closed(schema: Schema, is_composite: bool, is_input: bool) -> Schema:
    """The schema with the fields that Crossplane and Kubernetes add. It allows no
    unknown field."""
    properties = dict(schema.get("properties", {}))
    if not is_input:
        properties = {**properties, **_OBJECT}
    if is_composite:
        spec = dict(properties.get("spec", {"type": "object"}))
        spec["properties"] = {**spec.get("properties", {}), **_MACHINERY}
        properties["spec"] = spec
    closed: Schema = strict({**schema, "properties": properties})
    if not is_input:
        closed["required"] = sorted({*schema.get("required", []), "metadata"})
    return closed


def strict(schema: Any) -> Any:
    """The schema, changed to allow no unknown field at any depth, and with patterns in
    place of the rules that stand for them."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: strict(value) for key, value in schema.items()}
    for rule in schema.get("x-kubernetes-validations", []):
        if pattern := _PATTERN.fullmatch(rule["rule"]):
            inner["pattern"] = pattern[1]
    fields = schema.get("properties")
    may_have_more = (
        "additionalProperties" in schema
        or schema.get("x-kubernetes-preserve-unknown-fields")
        or not isinstance(fields, dict)
        or schema.get("type") != "object"
    )
    return inner if may_have_more else {**inner, "additionalProperties": False}


def errors(document: Schema) -> list[str]:
    """The errors of a manifest. A manifest of a foreign kind has none."""
    schema = ours().get((document["apiVersion"], document["kind"]))
    return [] if schema is None else violations(document, schema)


def violations(document: Any, schema: Schema) -> list[str]:
    found = jsonschema.Draft202012Validator(schema).iter_errors(document)
    return [f"{'.'.join(map(str, e.absolute_path))}: {e.message}" for e in found]


def part_errors(part: Any, kind: str) -> list[str]:
    """The errors of a manifest's part: some fields of a kind, such as a policy's."""
    (schema,) = [schema for (_, one), schema in ours().items() if one == kind]
    return violations(part, {**schema, "required": []})


def objects(value: Any) -> Iterator[Schema]:
    """All objects with apiVersion and kind in a document, at any depth."""
    if isinstance(value, dict):
        if "apiVersion" in value and "kind" in value:
            yield value
        for inner in value.values():
            yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)
