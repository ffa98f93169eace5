"""The compose files: valid, and every promise about them held."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.compose import OURS, ROOT, load, merged

RABBIT = "docker-compose.rabbitmq.yml"
SANDBOXED = {"api", "executor", "checker"}
SERVICES = load()["services"]


@pytest.mark.parametrize("name", ["docker-compose.yml", RABBIT])
def test_compose_files_satisfy_the_compose_specification(name: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(ROOT / name)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("files", [["docker-compose.yml"], ["docker-compose.yml", RABBIT]])
def test_everything_a_service_names_is_there(files: list[str]) -> None:
    compose = merged(*files)

    for name, service in compose["services"].items():
        assert set(service.get("depends_on", {})) <= set(compose["services"]), name
        assert set(service.get("secrets", [])) <= set(compose["secrets"]), name
        assert set(service["networks"]) <= set(compose["networks"]), name
        assert {volume.split(":")[0] for volume in service.get("volumes", [])} <= set(compose["volumes"]), name


@pytest.mark.parametrize(("name", "service"), SERVICES.items(), ids=SERVICES)
def test_every_service_is_limited_restarted_and_reaped(name: str, service: dict[str, Any]) -> None:
    assert {"mem_limit", "cpus", "pids_limit", "restart", "logging"} <= set(service)
    assert service["init"] is True
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["networks"] == ["assay"]
    assert name == "migrate" or "healthcheck" in service


@pytest.mark.parametrize("name", OURS)
def test_our_services_own_nothing_they_do_not_need(name: str) -> None:
    service = SERVICES[name]

    assert service["user"] == "10001:10001"
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert ("seccomp=./deploy/seccomp-worker.json" in service["security_opt"]) == (name in SANDBOXED)
    assert ("systempaths=unconfined" in service["security_opt"]) == (name in SANDBOXED)
    assert ("apparmor=unconfined" in service["security_opt"]) == (name in SANDBOXED)
    assert ("anthropic_api_key" in service["secrets"]) == (name in {"executor", "judge"})
    # Engines mount /tmp without the right to execute unless told.
    assert "exec" in service["tmpfs"][0].split(":")[1].split(",")


def test_one_service_builds_the_image_of_all() -> None:
    images = {SERVICES[name]["image"] for name in OURS}

    assert len(images) == 1
    assert [name for name in SERVICES if "build" in SERVICES[name]] == ["migrate"]


def test_nothing_is_published_beyond_loopback_by_default() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert published == {"api": ["127.0.0.1:8080:8080"], "flower": ["127.0.0.1:5555:5555"]}
    # Not even a variable opens Flower: its figures and health need no password.
    assert '"127.0.0.1:${FLOWER_PORT:-5555}:5555"' in (ROOT / "docker-compose.yml").read_text()


def test_no_secret_stands_in_an_environment() -> None:
    services = merged("docker-compose.yml", RABBIT)["services"]
    given = [(key, str(value)) for one in services.values() for key, value in one.get("environment", {}).items()]
    example = [line.partition("=")[::2] for line in (ROOT / ".env.example").read_text().splitlines() if "=" in line]

    for key, value in [*given, *example]:
        assert not any(word in key for word in ("PASS", "KEY", "AUTH", "TOKEN")) or key.endswith("_FILE"), key
        assert urlsplit(value).password is None, key
    assert (ROOT / "deploy" / "secrets" / ".gitignore").read_text().splitlines()[1:] == ["*", "!.gitignore"]


def test_the_rabbitmq_override_replaces_the_broker_everywhere_and_keeps_redis_for_the_limits() -> None:
    services = merged("docker-compose.yml", RABBIT)["services"]

    assert "profiles" not in services["redis"]
    for name in OURS:
        assert services[name]["environment"]["ASSAY_BROKER_URL"] == "amqp://assay@rabbitmq:5672//"
        assert services[name]["environment"]["ASSAY_LIMITS_URL"] == "redis://redis:6379/0"
        if "redis" in services[name]["depends_on"]:
            assert services[name]["depends_on"]["redis"] == {"condition": "service_healthy"}
            assert "rabbitmq" in services[name]["depends_on"]


def test_every_worker_role_has_a_service() -> None:
    from service.settings import Settings
    from workers.roles import roles

    commands = [SERVICES[name]["command"] for name in OURS]

    assert [["worker", role] in commands for role in roles(Settings())] == [True] * 4


def test_the_example_settings_are_settings() -> None:
    from service.settings import Settings

    lines = [line for line in (ROOT / ".env.example").read_text().splitlines() if line and not line.startswith("#")]
    names = {line.split("=")[0] for line in lines}
    known = {f"ASSAY_{name.upper()}" for name in Settings.model_fields} | {"ANTHROPIC_BASE_URL"}

    assert names - known == {"API_ADDRESS", "API_PORT", "FLOWER_PORT"}
    # Others than our settings are read by libraries too, which do not take an empty one for none.
    assert [line for line in lines if line.endswith("=") and not line.startswith("ASSAY_")] == []


def test_the_filter_lets_bubblewrap_work_and_refuses_what_nobody_needs() -> None:
    profile = json.loads((ROOT / "deploy" / "seccomp-worker.json").read_text())
    refused = {name for rule in profile["syscalls"] if "args" not in rule for name in rule["names"]}

    assert profile["defaultAction"] == "SCMP_ACT_ALLOW" and profile["architectures"] == ["SCMP_ARCH_X86_64"]
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ERRNO"}
    assert not refused & {"clone", "clone3", "unshare", "mount", "umount2", "pivot_root", "prctl", "seccomp"}
    assert {"bpf", "kexec_load", "init_module", "keyctl", "ptrace", "io_uring_setup", "setns"} <= refused
    assert {rule["args"][0]["value"] for rule in profile["syscalls"] if "args" in rule} == {17, 31, 38, 40}


class TestDockerfile:
    lines = (ROOT / "Dockerfile").read_text().splitlines()

    def test_the_base_is_pinned_to_a_patch_version(self) -> None:
        (base,) = [line.split("=")[1] for line in self.lines if line.startswith("ARG PYTHON_IMAGE")]

        assert base.split(":")[1].split("-")[0].count(".") == 2 and base.endswith("slim-bookworm")
        assert {line.split()[1] for line in self.lines if line.startswith("FROM")} == {"${PYTHON_IMAGE}"}

    def test_what_is_copied_exists_and_is_not_ignored(self) -> None:
        copied = [line.split()[1:-1] for line in self.lines if line.startswith("COPY") and "--from" not in line]
        names = {name for sources in copied for name in sources}
        allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

        assert names == allowed
        assert all((ROOT / name).exists() for name in names)

    def test_every_package_of_the_wheel_is_in_the_image(self) -> None:
        import tomllib

        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

        assert set(packages) <= {line.split()[1] for line in self.lines if line.startswith("COPY")}

    def test_an_edit_of_the_code_installs_the_code_alone(self) -> None:
        text = "\n".join(self.lines)
        first, second = [found.start() for found in re.finditer("bin/pip install", text)]
        copies = [found.start() for found in re.finditer(r"^COPY (?!--from|constraints)", text, re.MULTILINE)]

        assert first < min(copies) and max(copies) < second
        assert text[second:].startswith("bin/pip install --no-deps .")

    def test_it_runs_as_nobody_outside_usr(self) -> None:
        assert "USER 10001:10001" in self.lines and 'ENTRYPOINT ["assay"]' in self.lines
        assert "COPY --from=build /opt/assay /opt/assay" in self.lines
        assert not Path("/opt/assay").is_relative_to("/usr")
