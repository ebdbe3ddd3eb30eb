"""TLS of the services: pages, event streams and commands over https, with a certificate of a private authority."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import attrs
import pytest
import trustme
from playwright.async_api import expect

from eventlog.embedded.nats import EmbeddedServer
from tests.support import ROOT
from tests.support.pace import within
from tests.support.programs import warm
from tests.support.waiting import wait_until
from tests.support.web.browser import PATIENCE, chromium, visitor
from tests.support.web.node import built_pages

pytestmark = pytest.mark.real

KEYS = {"gctd": "GCTD_", "pantry": "PANTRY_SERVER_", "graphql_fn": "GRAPHQL_"}


@attrs.frozen
class Files:
    """A certificate of a private authority, its key, and the authority."""

    certificate: Path
    key: Path
    authority: Path

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    made = Files(tmp_path / "certificate.pem", tmp_path / "key.pem", tmp_path / "authority.pem")
    made.certificate.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    made.key.touch(mode=0o600)
    issued.private_key_pem.write_to_path(made.key)
    authority.cert_pem.write_to_path(made.authority)
    return made


def environment(module: str, nats: str, directory: Path, files: Files) -> dict[str, str]:
    """The settings of a service with TLS."""
    start = KEYS[module]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(tuple(KEYS.values()))}
    return {
        **inherited,
        "PYTHONPATH": str(ROOT),
        f"{start}HOST": "127.0.0.1",
        f"{start}PORT": "0",
        f"{start}{'TLSCERTIFICATE' if module == 'pantry' else 'TLS_CERTIFICATE'}": str(files.certificate),
        f"{start}{'TLSKEY' if module == 'pantry' else 'TLS_KEY'}": str(files.key),
        "GCTD_NATS_URL": nats,
        "PANTRY_NATS_URL": nats,
        "GCTD_DATABASE_URL": f"sqlite:{directory / 'gctd.db'}",
        "PANTRY_DATABASE_URL": f"sqlite:{directory / 'pantry.db'}",
    }


@asynccontextmanager
async def served(module: str, settings: Mapping[str, str], directory: Path) -> AsyncIterator[str]:
    """A service while a block runs; the address that it prints."""
    with (directory / f"{module}.log").open("wb") as log:
        output, end = os.pipe()
        process = await warm.fork(module, "serve", environment=settings, streams=(None, end, log.fileno()))
        os.close(end)
        reader, transport = await warm.stream(output)
        try:
            line = (await reader.readline()).decode()
            assert line.startswith("listening on https://127.0.0.1:"), (directory / f"{module}.log").read_text()[-2000:]
            yield line.split()[-1]
        finally:
            process.terminate()
            await process.wait()
            transport.close()


async def ready(http: aiohttp.ClientSession, url: str, files: Files) -> None:
    """Wait until a service is ready."""

    async def is_ready() -> bool:
        async with http.get(f"{url}/readyz", ssl=files.trust) as answer:
            return answer.status == 200

    await wait_until(is_ready, timeout=60, every=0.05)


@pytest.mark.parametrize("module", list(KEYS))
async def test_a_service_answers_https_and_nothing_else(module: str, tmp_path: Path, files: Files) -> None:
    async with (
        EmbeddedServer(tmp_path / "nats") as nats,
        aiohttp.ClientSession() as http,
        served(module, environment(module, nats.url, tmp_path, files), tmp_path) as url,
    ):
        await ready(http, url, files)
        async with http.get(f"{url}/", ssl=files.trust) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await http.get(f"{url}/")
        with pytest.raises(aiohttp.ClientError):
            await http.get(f"{url.replace('https', 'http')}/readyz")
        old = files.trust
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        async with http.get(f"{url}/livez", ssl=old) as answer:
            assert answer.status == 200


async def test_event_streams_sessions_and_commands_work_over_https(tmp_path: Path, files: Files) -> None:
    async with EmbeddedServer(tmp_path / "nats") as nats, aiohttp.ClientSession() as http:
        settings = environment("pantry", nats.url, tmp_path, files) | {"PANTRY_AUTH_TOKEN": "t0p-secret"}
        async with served("pantry", settings, tmp_path) as url:
            await ready(http, url, files)
            asked = {"Authorization": "Bearer t0p-secret"}
            async with http.post(f"{url}/api/v1/session", headers=asked, ssl=files.trust) as answer:
                cookie = answer.headers["Set-Cookie"]
                assert (answer.status, cookie.endswith("; Secure")) == (204, True)
            signed_in = {"Cookie": cookie.partition(";")[0]}
            stream = await http.get(f"{url}/api/v1/events", headers=signed_in, ssl=files.trust)
            assert (stream.status, stream.content_type) == (200, "text/event-stream")
            trusted = {**settings, "PANTRY_URL": url, "SSL_CERT_FILE": str(files.authority)}
            for known, code in ((trusted, 0), ({**trusted, "SSL_CERT_FILE": ""}, 1)):
                process = await asyncio.create_subprocess_exec(  # a fork keeps the authorities of its first import
                    *(sys.executable, "-m", "pantry", "category", "add", "Flour", "--json"),
                    env=known,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                _, err = await process.communicate()
                assert process.returncode == code, err.decode()
            async with asyncio.timeout(30):
                while b"event: category" not in await stream.content.readline():
                    pass
            stream.close()


async def test_a_browser_signs_in_and_follows_events_over_https(tmp_path: Path, files: Files) -> None:
    built_pages()
    token = "a-token-of-some-length"
    async with EmbeddedServer(tmp_path / "nats") as nats, aiohttp.ClientSession() as http, chromium() as browser:
        settings = environment("gctd", nats.url, tmp_path, files) | {"GCTD_AUTH_TOKEN": token, "GCTD_ALLOW_LOCAL": "true"}
        async with (
            served("gctd", settings, tmp_path) as url,
            visitor(browser, url, ignore_https_errors=True) as user,
        ):
            await ready(http, url, files)
            page = await user.context.new_page()
            await page.goto(f"{url}/repos")
            await page.get_by_label("Token").fill(token)
            await page.keyboard.press("Enter")
            await page.wait_for_selector('[data-live="live"]', timeout=PATIENCE)
            assert [cookie["secure"] for cookie in await user.context.cookies()] == [True]
            asked = {"Authorization": f"Bearer {token}"}
            async with http.post(
                f"{url}/api/repos", json={"repo_url": "https://example.com/owner/shop"}, headers=asked, ssl=files.trust
            ) as answer:
                assert answer.status < 300, await answer.text()
            await expect(page.get_by_role("link", name="owner/shop")).to_be_visible()
            assert all("401" in text for text in user.complaints), "the browser itself reports the refusal before the sign-in"
            user.complaints.clear()


async def test_a_client_that_begins_no_handshake_is_closed_in_the_time_of_a_head(tmp_path: Path, files: Files) -> None:
    async with EmbeddedServer(tmp_path / "nats") as nats:
        settings = environment("pantry", nats.url, tmp_path, files) | {"PANTRY_SERVER_READTIMEOUT": "1s"}
        async with served("pantry", settings, tmp_path) as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            with within(5):
                assert await reader.read() == b""
            writer.close()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda files: files.key.chmod(0o644), "chmod 600"),
        (lambda files: files.key.write_text("nothing"), "tls_key"),
        (lambda files: files.certificate.unlink(), "No such file"),
        (lambda files: trustme.CA().issue_cert("x").private_key_pem.write_to_path(files.key), "KEY_VALUES_MISMATCH"),
    ],
)
def test_a_certificate_that_cannot_be_used_ends_the_start_with_the_reason(
    change: object, text: str, tmp_path: Path, files: Files
) -> None:
    assert callable(change)
    change(files)
    done = warm.run("graphql_fn", "serve", environment=environment("graphql_fn", "", tmp_path, files))
    assert (done.returncode, text in done.stderr) == (2, True), done.stderr
