"""Host keys from an instance's console: `python -m machines.console URL ID ADDRESS`.

cloud-init prints them there on the first boot, and EC2 shows the console to whoever may
ask for it: a way to them that nobody on the network can forge. Prints known_hosts lines,
none while there are none.
"""

import sys
from typing import Any

import boto3

BEGIN = "-----BEGIN SSH HOST KEY KEYS-----"
END = "-----END SSH HOST KEY KEYS-----"


def host_keys(ec2: Any, instance: str) -> list[str]:
    """Type and base64 of each key."""
    output = ec2.get_console_output(InstanceId=instance).get("Output", "")
    _, begun, rest = output.rpartition(BEGIN)
    keys, ended, _ = rest.partition(END)
    if not begun or not ended:
        return []
    return [" ".join(line.split()[:2]) for line in keys.split("\n") if line.strip()]


def main(url: str, instance: str, address: str) -> None:
    ec2 = boto3.client(
        "ec2",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    for key in host_keys(ec2, instance):
        print(address, key)


if __name__ == "__main__":
    main(*sys.argv[1:])
