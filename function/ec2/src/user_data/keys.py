#!/usr/bin/python3
"""Prints the public keys in the tags of this instance. sshd asks at each login."""
import re
import sys
from urllib.request import ProxyHandler, Request, build_opener

URL = "http://169.254.169.254/latest/"
TAGS = "meta-data/tags/instance/"
KEY = re.compile(r"gpu\.platform\.acme\.io:authorized-key-(\d+)(?:-(\d+))?")


def ask(path, method="GET", **headers):
    request = Request(URL + path, method=method, headers=headers)
    return build_opener(ProxyHandler({})).open(request, timeout=5).read().decode()


if sys.argv[1:] == ["developer"]:
    seconds = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = {"X-aws-ec2-metadata-token": ask("api/token", "PUT", **seconds)}
    found = filter(None, map(KEY.fullmatch, ask(TAGS, **token).split("\n")))
    keys = {}
    for tag in sorted(found, key=lambda tag: (int(tag[1]), int(tag[2] or 1))):
        keys[tag[1]] = keys.get(tag[1], "") + ask(TAGS + tag[0], **token)
    print("\n".join(keys.values()))
