"""A Ceph object gateway on this machine, with one monitor and one storage process that keeps everything in memory."""

import secrets
import shutil
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.helpers.ports import free_ports

PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")

CONFIGURATION = """
[global]
fsid = {fsid}
mon_host = v1:127.0.0.1:{mon_port}
mon_initial_members = a
ms_bind_msgr2 = false
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = {directory}
admin_socket = {directory}/$name.asok
log_file = {directory}/$name.log
mon_data = {directory}/mon
osd_data = {directory}/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
osd_pool_default_pg_num = 1
osd_pool_default_pgp_num = 1
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
mon_data_avail_crit = 1
keyring = {directory}/keyring
rgw_frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
rgw_data = {directory}/rgw
"""

START_SECONDS = 120.0


def lacks_ceph() -> str | None:
    """Return a sentence if Ceph is not installed."""
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    return f"not installed: {', '.join(missing)} (Debian: ceph-mon ceph-osd ceph-common radosgw)" if missing else None


@contextmanager
def ceph_gateway(directory: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the endpoint of a gateway, and the variables of a user who may do everything there."""
    mon_port, port = free_ports(2)
    configuration = directory / "ceph.conf"
    fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
    configuration.write_text(CONFIGURATION.format(fsid=fsid, mon_port=mon_port, port=port, directory=directory))
    for name in ("mon", "osd", "rgw"):
        (directory / name).mkdir()
    (directory / "keyring").touch()

    def done(*command: object) -> str:
        words = [str(word) for word in command]
        found = subprocess.run(words, capture_output=True, text=True, timeout=START_SECONDS, cwd=directory)
        assert found.returncode == 0, f"{words}: {found.stderr}"
        return found.stdout

    with ExitStack() as stack:

        def start(*command: object) -> None:
            output = stack.enter_context((directory / f"{command[0]}.output").open("wb"))
            process = subprocess.Popen([str(word) for word in command], stdout=output, stderr=output, cwd=directory)
            stack.callback(process.wait)
            stack.callback(process.kill)  # nothing of it is kept

        at = ("-c", configuration)
        done("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v1:127.0.0.1:{mon_port}]", "monmap")
        done("ceph-mon", *at, "--mkfs", "-i", "a", "--monmap", "monmap")
        start("ceph-mon", *at, "-i", "a", "-f")
        done("ceph", *at, "osd", "new", osd)
        done("ceph-osd", *at, "-i", "0", "--mkfs", "--osd-uuid", osd)
        start("ceph-osd", *at, "-i", "0", "-f")
        keys = {"AWS_ACCESS_KEY_ID": secrets.token_hex(8), "AWS_SECRET_ACCESS_KEY": secrets.token_hex(16)}
        access, secret = keys.values()
        user = ("--uid", "tests", "--display-name", "tests", "--access-key", access, "--secret-key", secret)
        done("radosgw-admin", *at, "user", "create", *user)
        start("radosgw", *at, "-n", "client.rgw", "-f")
        endpoint = f"http://127.0.0.1:{port}"
        wait_for(endpoint)
        yield endpoint, keys


def wait_for(endpoint: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(endpoint, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < deadline, "the gateway did not start"
            time.sleep(0.2)
