"""Behind nginx and Caddy, as the page on deployment says: two studies below paths of one host."""

import contextlib
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import httpx2 as httpx
import pytest
from studykit import make_study

from benchmarks._study_people import served

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CADDY = shutil.which("caddy")
WHO = {"name": "ada", "password": "correct horse"}


def free_port():
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


@contextlib.contextmanager
def nginx(folder, locations):
    """nginx with the headers of the page on deployment; its address."""
    page = (Path(__file__).parents[1] / "docs" / "study-deployment.md").read_text()
    headers = "\n".join(re.findall(r"^ +(proxy_set_header .*?;)", page, re.M))
    assert headers.count("proxy_set_header") == 3
    port = free_port()
    blocks = "\n".join(
        f"location {path} {{ proxy_pass {target}; {headers} }}" for path, target in locations
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"""daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 512m;
    {blocks}
  }}
}}"""
    )
    with running([NGINX, "-c", str(config), "-p", str(folder)], port):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def caddy(folder, locations):
    """Caddy with the blocks of the page on deployment, without a certificate; its address."""
    page = (Path(__file__).parents[1] / "docs" / "study-deployment.md").read_text()
    block = re.search(r"handle /flowers/\* \{\s+reverse_proxy 127.0.0.1:8001\s+\}", page)[0]
    port = free_port()
    blocks = "\n".join(
        block.replace("/flowers/", path).replace(
            "127.0.0.1:8001",
            # here it speaks no TLS, but people's browsers do
            target.removeprefix("http://").rstrip("/")
            + " {\n header_up X-Forwarded-Proto https\n }",
        )
        for path, target in locations
    )
    config = folder / "Caddyfile"
    config.write_text(f"{{\n admin off\n}}\nhttp://127.0.0.1:{port} {{\n{blocks}\n}}\n")
    command = [CADDY, "run", "--config", str(config), "--adapter", "caddyfile"]
    with running(command, port, env={"HOME": str(folder), "XDG_DATA_HOME": str(folder)}):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def running(command, port, **options):
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **options)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize(
    "proxy",
    [
        pytest.param(
            nginx, marks=pytest.mark.skipif(NGINX is None, reason="no nginx: apt-get install it")
        ),
        pytest.param(
            caddy, marks=pytest.mark.skipif(CADDY is None, reason="no caddy: apt-get install it")
        ),
    ],
)
def test_two_studies_on_one_host(tmp_path, proxy):
    one, other = (make_study(tmp_path / name, questions=5) for name in ("a.db", "b.db"))
    with (
        served(one, "--prefix", "/flowers") as first,
        served(other, "--prefix", "tones") as second,
        proxy(
            tmp_path,
            [  # one proxy takes the path away, the other leaves it
                ("/flowers/", f"http://127.0.0.1:{first.port}"),
                ("/tones/", f"http://127.0.0.1:{second.port}/"),
            ],
        ) as base,
        httpx.Client(base_url=base) as client,
    ):
        for server, path in ((first, "/flowers"), (second, "/tones")):
            page = client.get(f"{path}/")
            assert page.status_code == 200
            for address in re.findall(r'(?:src|href)="([^"#]+)"', page.text):
                asset = client.get(str(httpx.URL(f"{base}{path}/").join(address)))
                assert asset.status_code == 200, address
            setup = server.setup.partition(path)[2]
            made = client.post(f"{path}{setup}", data=WHO)
            assert made.headers["location"] == f"{path}/dashboard"
            reply = client.post(f"{path}/login", data=WHO)
            assert reply.headers["location"] == f"{path}/dashboard"
            cookie = reply.headers["set-cookie"].lower()
            assert f"path={path}/" in cookie
            assert "secure" in cookie, "the proxy says that it speaks https"
            joined = client.post(
                f"{path}/api/join", json={"consent_version": "1", "parameters": {}}
            )
            assert joined.json()["stage"] == "instructions"
            words = {
                "cookie": "; ".join(p.split(";")[0] for p in reply.headers.get_list("set-cookie"))
            }
            for tab in ("", "/people", "/map", "/items", "/data"):
                page = client.get(f"{path}/dashboard{tab}", headers=words)
                assert page.status_code == 200
                for address in re.findall(r'(?:src|href)="([^"#]+)"', page.text):
                    assert address.startswith(f"{path}/"), address
            assert client.get(f"{path}/api/researcher/status", headers=words).status_code == 200
