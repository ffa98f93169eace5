"""The Kubernetes base: valid, complete, and as closed as the compose file."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from support.compose import ROOT, load

from service.settings import Settings

KUBERNETES = ROOT / "deploy" / "kubernetes"
# The oldest Kubernetes whose pods may have users of their own and a /proc of their own without a switch.
VERSION = "1.33"
OUR_WORK = {"migrate", "api", "executor", "checker", "judge", "aggregator", "flower"}

# What we use of KEDA's own kinds, closed, so that a slip of the pen is found.
NAMED = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}},
}
TRIGGER = {
    "type": "object",
    "required": ["type", "metadata", "authenticationRef"],
    "additionalProperties": False,
    "properties": {
        "type": {"const": "redis"},
        "metadata": {
            "type": "object",
            "required": ["address", "listName", "listLength"],
            "additionalProperties": False,
            "properties": {
                "address": {"type": "string", "pattern": r"^[a-z.]+:\d+$"},
                "listName": {"enum": ["execute", "check", "judge", "aggregate"]},
                "listLength": {"type": "string", "pattern": r"^[1-9]\d*$"},
            },
        },
        "authenticationRef": NAMED,
    },
}


def _only(name: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [name], "additionalProperties": False, "properties": {name: content}}


STABLE = _only("stabilizationWindowSeconds", {"type": "integer", "minimum": 0, "maximum": 3600})
# Without cooldownPeriod, which governs nothing but the step to no replica at all.
SCALED_OBJECT = {
    "type": "object",
    "required": ["scaleTargetRef", "triggers"],
    "additionalProperties": False,
    "properties": {
        "scaleTargetRef": NAMED,
        "minReplicaCount": {"type": "integer", "minimum": 0},
        "maxReplicaCount": {"type": "integer", "minimum": 1},
        "pollingInterval": {"type": "integer", "minimum": 1},
        "advanced": _only("horizontalPodAutoscalerConfig", _only("behavior", _only("scaleDown", STABLE))),
        "triggers": {"type": "array", "minItems": 1, "items": TRIGGER},
    },
}


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


BASE = yaml.safe_load((KUBERNETES / "base" / "kustomization.yaml").read_text())
RESOURCES = [document for name in BASE["resources"] for document in documents(KUBERNETES / "base" / name)]
(GENERATED,) = BASE["configMapGenerator"]
LITERALS: list[str] = GENERATED["literals"]
PODS = {
    document["metadata"]["name"]: document["spec"]["template"]["spec"]
    for document in RESOURCES
    if document["kind"] in ("Deployment", "StatefulSet", "Job")
}


def test_the_base_lists_every_file_it_has() -> None:
    files = {path.name for path in (KUBERNETES / "base").iterdir()} - {"kustomization.yaml"}

    assert set(BASE["resources"]) == files


@pytest.mark.parametrize(
    "document", RESOURCES, ids=lambda document: f"{document['kind']}-{document['metadata']['name']}"
)
def test_resources_satisfy_the_schemas_of_kubernetes(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, VERSION, strict=True)


def test_the_example_secret_has_every_secret_of_the_compose_file() -> None:
    (secret,) = documents(KUBERNETES / "secret.example.yaml")

    kubernetes_validate.validate(secret, VERSION, strict=True)
    assert set(secret["stringData"]) == set(load()["secrets"])


def test_autoscaling_follows_queues_that_workers_consume() -> None:
    found = documents(KUBERNETES / "autoscaling" / "keda.yaml")

    authentications = {one["metadata"]["name"] for one in found if one["kind"] == "TriggerAuthentication"}
    for scaled in [one for one in found if one["kind"] == "ScaledObject"]:
        jsonschema.validate(scaled["spec"], SCALED_OBJECT)
        assert scaled["apiVersion"] == "keda.sh/v1alpha1"
        assert scaled["spec"]["scaleTargetRef"]["name"] in PODS
        assert {trigger["authenticationRef"]["name"] for trigger in scaled["spec"]["triggers"]} <= authentications


def test_keda_may_reach_redis_and_nothing_else() -> None:
    (policy,) = documents(KUBERNETES / "autoscaling" / "network.yaml")
    (rule,) = policy["spec"]["ingress"]

    kubernetes_validate.validate(policy, VERSION, strict=True)
    assert policy["spec"]["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "redis"}
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keda"}}}]
    assert rule["ports"] == [{"port": 6379, "protocol": "TCP"}]
    overlay = yaml.safe_load((KUBERNETES / "autoscaling" / "kustomization.yaml").read_text())
    assert "network.yaml" in overlay["resources"]


def largest_fleet() -> dict[str, int]:
    """How many pods of each of our deployments there may be."""
    found = [*RESOURCES, *documents(KUBERNETES / "autoscaling" / "keda.yaml")]
    fixed = {one["metadata"]["name"]: one["spec"]["replicas"] for one in found if one["kind"] == "Deployment"}
    scaled = [one["spec"] for one in found if one["kind"] == "ScaledObject"]
    return {**fixed, **{one["scaleTargetRef"]["name"]: one["maxReplicaCount"] for one in scaled}}


def test_the_largest_fleet_fits_the_connections_and_the_window() -> None:
    fleet, settings = largest_fleet(), Settings()
    (words,) = [PODS["postgres"]["containers"][0]["args"]]
    connections = int(next(word for word in words if word.startswith("max_connections")).split("=")[1])
    window = int(next(one for one in LITERALS if one.startswith("ASSAY_WINDOW=")).split("=")[1])
    slots = {name: getattr(settings, f"{name}_concurrency") for name in ("executor", "checker", "judge")}

    # 40 by the pool of a process (docs/operating.md); Flower has none, and PostgreSQL keeps 3 for its superuser.
    assert sum(count for name, count in fleet.items() if name != "flower") * 40 <= connections - 3
    assert 2 * sum(fleet[name] * many for name, many in slots.items()) <= window


@pytest.mark.parametrize("name", sorted(OUR_WORK))
def test_our_pods_are_as_closed_as_our_services(name: str) -> None:
    pod, service = PODS[name], load()["services"][name]
    (container,) = pod["containers"]

    assert container["args"] == service["command"]
    assert pod["securityContext"]["runAsUser"] == 10001 and pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "memory" in container["resources"]["limits"]
    sandboxed = "systempaths=unconfined" in service["security_opt"]
    # A /proc that may be mounted anew is given only to pods whose users are not the node's.
    assert (container["securityContext"].get("procMount") == "Unmasked") == sandboxed
    assert (pod.get("hostUsers") is False) == sandboxed
    assert (pod["securityContext"]["seccompProfile"]["type"] == "Localhost") == sandboxed
    assert (pod["securityContext"].get("appArmorProfile") == {"type": "Unconfined"}) == sandboxed
    items = next(volume["secret"]["items"] for volume in pod["volumes"] if volume["name"] == "secrets")
    assert {item["key"] for item in items} == set(service["secrets"])


@pytest.mark.parametrize("folder", ["base", "autoscaling"])
def test_kustomize_builds_it(folder: str) -> None:
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not on PATH; install it to try the whole build")

    done = subprocess.run(
        ["kubectl", "kustomize", str(KUBERNETES / folder)], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    built = [document for document in yaml.safe_load_all(done.stdout) if document]
    assert {one["metadata"].get("namespace", "assay") for one in built} == {"assay"}
    assert {one["metadata"]["name"] for one in built} >= OUR_WORK
