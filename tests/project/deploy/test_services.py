"""The units of `deploy/systemd` and the containers of `deploy/containers`: run as they say, they are a system."""

from __future__ import annotations

import asyncio
import configparser
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import attrs
import pytest
import trustme
import yaml

from eventlog.embedded.die_with_parent import attached_command
from eventlog.embedded.nats import free_ports
from gctd.scan.isolation import cgroups
from tests.support import ROOT
from tests.support.waiting import wait_until

DEPLOY = ROOT / "deploy"
SYSTEMD, CONTAINERS = DEPLOY / "systemd", DEPLOY / "containers"
BIN = Path(sys.executable).parent


@attrs.frozen
class Part:
    """A part to run: a command and its environment."""

    command: list[str]
    environment: dict[str, str]


class Installed:
    """Where the places that the files name are on this machine, and their ports; certificates as the files say."""

    def __init__(self, directory: Path) -> None:
        nats, gctd, pantry, gateway = free_ports(4)
        self.gctd, self.pantry, self.gateway = (f"http://127.0.0.1:{port}" for port in (gctd, pantry, gateway))
        self._places = {
            "/etc/gctd/nats-server.conf": str(DEPLOY / "nats-server.conf"),
            "/etc/gctd/": f"{directory}/etc/",
            "/var/lib/gctd": f"{directory}/lib",
            "/var/lib/pantry": f"{directory}/lib",
            "/opt/gctd/bin/": f"{BIN}/",
            "/opt/gctd/": f"{ROOT}/",
            "nats.example.com": "127.0.0.1",
            "0.0.0.0": "127.0.0.1",
            "4222": str(nats),
            "8080": str(gctd),
            "8081": str(pantry),
            "8082": str(gateway),
        }
        (directory / "etc").mkdir()
        (directory / "lib").mkdir()
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1")
        authority.cert_pem.write_to_path(str(directory / "etc" / "authority.pem"))
        certificate.private_key_pem.write_to_path(str(directory / "etc" / "key.pem"))
        certificate.cert_chain_pems[0].write_to_path(str(directory / "etc" / "certificate.pem"))

    def here(self, text: str) -> str:
        """A text of the files with the places of this machine."""
        for there, here in self._places.items():
            text = text.replace(there, here)
        return text

    def variables(self, file: Path) -> dict[str, str]:
        """The variables of an environment file."""
        lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
        return {name: self.here(value) for name, _, value in (line.partition("=") for line in lines)}


def units(installed: Installed) -> dict[str, Part]:
    """Return the parts of the units, in the order of their start."""
    found = {}
    for name in ("nats-server", "gctd", "gctd-worker", "pantry", "graphql-fn"):
        service = unit(SYSTEMD / f"{name}.service")["Service"]
        environment = DEPLOY / Path(service["EnvironmentFile"]).name
        found[name] = Part(installed.here(service["ExecStart"]).split(), installed.variables(environment))
    return found


def test_the_worker_s_unit_delegates_its_control_group_and_hides_it_from_no_scan() -> None:
    """`gctd.scan.isolation.cgroups` needs these controllers, and must write to the group."""
    service = unit(SYSTEMD / "gctd-worker.service")["Service"]
    assert {*cgroups.NEEDED, *cgroups.SHARED} == set(service["Delegate"].split())
    assert "ProtectControlGroups" not in service


def unit(file: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # as configparser's documentation has it
    parser.read(file)
    return parser


def containers(installed: Installed) -> dict[str, Part]:
    """Return the parts of the containers, in the order of their start. A program is found on the PATH of the image."""
    declared: dict[str, dict[str, Any]] = yaml.safe_load((CONTAINERS / "compose.yaml").read_text())["services"]
    services = {name: service for name, service in declared.items() if "profiles" not in service}  # images of others
    found = {}
    for name, service in services.items():
        program, *arguments = map(installed.here, service["command"])
        environment: dict[str, str] = {}
        for file in service["env_file"]:
            environment |= installed.variables(CONTAINERS / file)
        environment |= {variable: installed.here(value) for variable, value in service.get("environment", {}).items()}
        found[name] = Part([str(BIN / program), *arguments], environment)
    return found


@asynccontextmanager
async def started(part: Part, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the command in an environment that has PATH, HOME and the variables of the files only."""
    environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(log.parent), **part.environment}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *attached_command(part.command), env=environment, cwd="/", stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def apply(part: Part, operator: str) -> None:
    """`projections streams apply`, as the operator does it before the first start."""
    url = urlsplit(part.environment["GCTD_NATS_URL"])
    address = f"{url.scheme}://operator:{operator}@{url.hostname}:{url.port}"
    environment = {"PATH": os.defpath, **part.environment, "GCTD_NATS_URL": address}
    command = [str(BIN / "projections"), "streams", "apply"]
    done = await asyncio.to_thread(subprocess.run, command, env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"everything is as declared\n")


async def says(http: aiohttp.ClientSession, url: str, wanted: str) -> bool:
    try:
        async with http.get(url) as answer:
            return answer.status == 200 and wanted in await answer.text()
    except (aiohttp.ClientError, TimeoutError):
        return False


@pytest.mark.real
@pytest.mark.parametrize("parts_of", [units, containers])
async def test_the_commands_with_their_environment_are_a_system(tmp_path: Path, parts_of: Any) -> None:
    """nats-server, then, when the operator has applied the streams, all services: ready, and ended in order by SIGTERM."""
    installed = Installed(tmp_path)
    parts: Mapping[str, Part] = parts_of(installed)
    broker, *services = parts
    log = tmp_path / "nats.log"
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http, started(parts[broker], log) as nats:
        await wait_until(lambda: b"Server is ready" in log.read_bytes() or nats.returncode is not None)
        assert nats.returncode is None, log.read_text()
        await apply(parts[services[0]], parts[broker].environment["OPERATOR_PASSWORD"])
        async with (
            started(parts["gctd"], tmp_path / "gctd.log") as gctd,
            started(parts["pantry"], tmp_path / "pantry.log") as pantry,
        ):
            for url in (installed.gctd, installed.pantry):
                await wait_until(lambda url=url: says(http, f"{url}/readyz", "ok"), timeout=60, every=0.1)  # type: ignore[misc]
            worker, gateway = (part for name, part in parts.items() if name not in {broker, "gctd", "pantry"})
            async with (
                started(worker, tmp_path / "worker.log") as working,
                started(gateway, tmp_path / "gateway.log") as asked,
            ):
                await wait_until(lambda: says(http, f"{installed.gctd}/api/workers", '"idle"'), timeout=60, every=0.1)
                await wait_until(lambda: says(http, f"{installed.gateway}/readyz", "ok"), timeout=60, every=0.1)
                for function, query in (("pantry", "{products{edges{node{name}}}}"), ("tracker", "{repos{edges{node{id}}}}")):
                    assert await says(http, f"{installed.gateway}/function/{function}?query={query}", '"edges":[]')
                for each in (asked, working, pantry, gctd):
                    each.terminate()
                    async with asyncio.timeout(60):
                        assert await each.wait() == 0


@pytest.mark.real
def test_the_units_are_as_systemd_wants_them(tmp_path: Path) -> None:
    """All sections and keys are known. If systemd is installed, it checks the units. A service that ends is always restarted."""
    service = {
        *(
            "User",
            "EnvironmentFile",
            "ExecStart",
            "ExecReload",
            "StateDirectory",
            "StateDirectoryMode",
            "LimitNOFILE",
            "Delegate",
        ),
        *("Restart", "RestartSec", "RestartPreventExitStatus", "TimeoutStopSec"),
        *("NoNewPrivileges", "CapabilityBoundingSet", "ProtectSystem", "ProtectHome", "PrivateTmp", "UMask"),
    }
    apart = {
        *("PrivateDevices", "ProtectClock", "ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs"),
        *("ProtectKernelModules", "ProtectKernelTunables", "LockPersonality", "RestrictAddressFamilies", "RestrictNamespaces"),
        *("RestrictRealtime", "RestrictSUIDSGID", "SystemCallArchitectures", "SystemCallFilter"),
    }
    known = {
        "Unit": {"Description", "Wants", "After", "StartLimitIntervalSec"},
        "Service": service | apart,
        "Install": {"WantedBy"},
    }
    files = sorted(SYSTEMD.glob("*.service"))
    assert len(files) == 5
    for file in files:
        found = unit(file)
        assert {section: set(found[section]) <= known[section] for section in found.sections()} == dict.fromkeys(known, True)
        assert (found["Service"]["Restart"], found["Unit"]["StartLimitIntervalSec"]) == ("always", "0")
        assert set(found["Service"]) & apart == (set() if file.name == "gctd-worker.service" else apart)
        (tmp_path / file.name).write_text(file.read_text().replace("/opt/gctd/bin/", f"{BIN}/"))
    if systemd := shutil.which("systemd-analyze"):
        done = subprocess.run([systemd, "verify", *tmp_path.glob("*.service")], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.real
def test_the_image_is_made_by_the_set_up_that_the_tests_use() -> None:
    """Its last command sets this checkout up, which is done already, so it does nothing. Its programs and exclusions exist."""
    lines = [line.split() for line in (CONTAINERS / "Containerfile").read_text().splitlines() if not line.startswith("#")]
    [set_up] = [words[1:] for words in lines if words[:2] == ["RUN", "python"]]
    done = subprocess.run([sys.executable, *set_up[1:]], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    [path] = [words[1] for words in lines if words[0] == "ENV"]
    assert path.startswith("PATH=/opt/gctd/.venv/bin:")
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".venv", ".data", ".git"} <= set(ignored)
