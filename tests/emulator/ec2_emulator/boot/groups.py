"""The ingress rules of security groups, as rules for nftables."""

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Any

# "IpPermission" (API reference): a protocol is a name or a number, and -1 means all.
_PORTS = {"tcp": "tcp", "6": "tcp", "udp": "udp", "17": "udp"}


def accepted(groups: Iterable[Any], members: dict[str, set[str]]) -> list[str]:
    """Matches for nftables. `members` has the addresses of each group's instances."""
    found: list[str] = []
    for group in groups:
        for rule in group.ingress_rules:
            for source in _sources(rule, members):
                found.append(f"ip saddr {source} {_traffic(rule)}".strip())
    return list(dict.fromkeys(found))


def _sources(rule: Any, members: dict[str, set[str]]) -> list[str]:
    named = (rule.ip_range or {}).get("CidrIp")
    sources = [str(IPv4Network(named, strict=False))] if named else []
    group = (rule.source_group or {}).get("GroupId")
    return sources + sorted(members.get(group, set()))


def _traffic(rule: Any) -> str:
    protocol = str(rule.ip_protocol)
    if protocol in ("icmp", "1"):
        return "ip protocol icmp"
    name = _PORTS.get(protocol)
    if name is None:
        return "" if protocol == "-1" else f"ip protocol {protocol}"
    if rule.from_port is None or int(rule.from_port) < 0:
        return f"ip protocol {name}"
    return f"{name} dport {int(rule.from_port)}-{int(rule.to_port)}"
