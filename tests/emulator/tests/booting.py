"""For tests of instances that boot: an emulator with machines, and logins to them."""

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machines import cache, console, provide
from machines.waiting import until

IMAGE = "ami-00000000000c0deb0"
USER = "developer"

USER_DATA = """\
#cloud-config
ssh_genkeytypes: [ed25519]
users:
  - name: developer
    shell: /bin/bash
    sudo: "ALL=(ALL) NOPASSWD:ALL"
    ssh_authorized_keys: ["{key}"]
write_files:
  - path: /etc/systemd/system/witness.service
    content: |
      [Service]
      ExecStart=/bin/sleep infinity
      ExecStop=/bin/sh -c 'echo stopped >>/var/lib/witness'
      [Install]
      WantedBy=multi-user.target
runcmd: [[systemctl, enable, --now, witness.service]]
"""


@dataclass
class Cloud:
    control: Any
    process: subprocess.Popen[str]
    ec2: Any
    # The folder of the SSH key and of the emulator's files.
    folder: Path
    # The address from which the tests connect: the emulator's side of each cable.
    here: str

    @classmethod
    @contextmanager
    def up(cls, folder: Path, number: int = 0) -> Iterator["Cloud"]:
        """Starts an emulator with the network 10.246.NUMBER.0/24. A lock ensures that
        each number is in use only once at a time."""
        # conftest imports this module, so this import cannot be at the top.
        from conftest import started

        options = ["--machines", str(folder / "machines")]
        options += ["--machine-network", f"10.246.{number}.0/24"]
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]
        lock = cache.lock(f"emulator-machines-{number}")
        with lock, started(*options) as (control, process):
            provide.provide(control.url, provide.folders())
            subprocess.run([*keygen, str(folder / "key")], check=True)
            ec2, here = control.client("ec2"), f"10.246.{number}.1/32"
            yield cls(control, process, ec2, folder, here)

    @property
    def key(self) -> str:
        return (self.folder / "key.pub").read_text().strip()

    def boot(self, ready: bool = True, **changes: Any) -> "Booted":
        """Launches an instance that lets the tests in. With `ready`, waits for SSH."""
        request = {
            "ImageId": IMAGE,
            "InstanceType": "g5.xlarge",
            "MinCount": 1,
            "MaxCount": 1,
            "UserData": USER_DATA.format(key=self.key),
            "MetadataOptions": {
                "HttpTokens": "required",
                "InstanceMetadataTags": "enabled",
            },
            **changes,
        }
        if "SecurityGroupIds" not in request:
            request["SecurityGroupIds"] = [self.group(self.here)]
        (launched,) = self.ec2.run_instances(**request)["Instances"]
        instance = Booted(self, launched["InstanceId"])
        if ready:
            instance.await_login()
        return instance

    def group(self, *cidrs: str) -> str:
        """Creates a security group that allows SSH from these networks."""
        name = f"ssh-{len(self.ec2.describe_security_groups()['SecurityGroups'])}"
        made = self.ec2.create_security_group(GroupName=name, Description=name)
        group: str = made["GroupId"]
        for cidr in cidrs:
            self.ec2.authorize_security_group_ingress(**ssh_from(group, cidr))
        return group


@dataclass
class Booted:
    cloud: Cloud
    id: str
    keys: list[str] = field(default_factory=list)

    def shown(self) -> dict[str, Any]:
        answer = self.cloud.ec2.describe_instances(InstanceIds=[self.id])
        (reservation,) = answer["Reservations"]
        (instance,) = reservation["Instances"]
        return dict(instance)

    @property
    def state(self) -> str:
        return str(self.shown()["State"]["Name"])

    @property
    def address(self) -> str:
        return str(self.shown()["PublicIpAddress"])

    def await_state(self, state: str) -> None:
        until(f"{self.id} to be {state}", lambda: self.state == state)

    def await_login(self) -> None:
        self.await_state("running")
        until(f"{self.id} to let in", lambda: self.ssh("true", check=False) is not None)
        self.ssh("cloud-init status --wait >/dev/null")

    def known_hosts(self) -> list[str]:
        """The host keys that the console showed first. A machine must keep its keys."""
        self.keys = self.keys or console.host_keys(self.cloud.ec2, self.id)
        return [f"{self.address} {key}" for key in self.keys]

    def ssh(self, command: str, check: bool = True) -> str | None:
        """Runs a command by SSH, with the console's host key. Returns its output."""
        known = self.cloud.folder / f"known-{self.id}"
        known.write_text("".join(f"{line}\n" for line in self.known_hosts()))
        options = ["BatchMode=yes", "StrictHostKeyChecking=yes", "ConnectTimeout=2"]
        options += [f"UserKnownHostsFile={known}", "LogLevel=ERROR"]
        given = [part for option in options for part in ("-o", option)]
        key = ["-i", str(self.cloud.folder / "key")]
        done = subprocess.run(
            ["ssh", *given, *key, f"{USER}@{self.address}", command],
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            return done.stdout.strip()
        assert not check, f"{command}: {done.stderr}"
        return None

    def says(self, command: str) -> str:
        said = self.ssh(command)
        assert said is not None
        return said

    def python(self, script: str, *arguments: str) -> Any:
        """Runs a script on the machine as root. Returns its output, read as JSON."""
        encoded = base64.b64encode(script.encode()).decode()
        words = " ".join(arguments)
        program = f"echo {encoded} | base64 -d | sudo python3 - {words}"
        return json.loads(self.says(program))

    def terminate(self) -> None:
        self.cloud.ec2.terminate_instances(InstanceIds=[self.id])
        self.await_state("terminated")


def ssh_from(group: str, cidr: str) -> dict[str, Any]:
    """The parameters of a security group's rule for SSH."""
    permission = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    return {
        "GroupId": group,
        "IpPermissions": [{**permission, "IpRanges": [{"CidrIp": cidr}]}],
    }


# Reads the paths in its arguments from the metadata service. `answers` is by path.
METADATA = """
import json, sys, urllib.error, urllib.request
BASE = "http://169.254.169.254/latest/"
def ask(path, method="GET", **headers):
    named = {k.replace("_", "-"): v for k, v in headers.items()}
    request = urllib.request.Request(BASE + path, method=method, headers=named)
    try:
        return urllib.request.urlopen(request, timeout=5).read().decode()
    except urllib.error.HTTPError as error:
        return error.code
token = ask("api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60")
answers = {p: ask(p, X_aws_ec2_metadata_token=token) for p in sys.argv[1:]}
"""


def metadata(instance: Booted, *paths: str) -> dict[str, Any]:
    """The answers by path: the text, or the HTTP status of an error."""
    script = f"{METADATA}\nprint(json.dumps(answers))\n"
    found: dict[str, Any] = instance.python(script, *paths)
    return found
