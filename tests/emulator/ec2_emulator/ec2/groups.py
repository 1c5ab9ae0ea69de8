"""Security groups: requests that EC2 refuses and moto accepts."""

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.security_groups import SecurityGroups

from ..errors import AwsError
from .instance_view import tag_list
from .paging import page
from .region import Region
from .wire import Answer


class Groups(SecurityGroups):
    here: Region

    def create_security_group(self) -> ActionResult:
        name, vpc = self._get_param("GroupName"), self._get_param("VpcId")
        vpc = vpc or self.ec2_backend.default_vpc.id
        if not name:
            raise AwsError(
                "MissingParameter", "The request must contain the parameter GroupName"
            )
        if name.startswith("sg-") or name == "default":
            raise AwsError(
                "InvalidParameterValue",
                f"Value ({name}) for parameter GroupName is invalid. Group names may "
                "not be in the format sg-* and may not be 'default'.",
            )
        if vpc not in self.ec2_backend.vpcs:
            raise AwsError(
                "InvalidVpcID.NotFound", f"The vpc ID '{vpc}' does not exist"
            )
        # "CreateSecurityGroup", GroupName: names are case-insensitive.
        names = (group.name for group in self.ec2_backend.groups[vpc].values())
        if name.lower() in (taken.lower() for taken in names):
            raise AwsError(
                "InvalidGroup.Duplicate",
                f"The security group '{name}' already exists for VPC '{vpc}'",
            )
        result: ActionResult = super().create_security_group()
        return result

    def delete_security_group(self) -> ActionResult:
        group = self._group()
        self.error_on_dryrun()
        if group.name == "default":
            raise AwsError(
                "CannotDelete",
                f'the specified group: "{group.id}" name: "default" cannot be deleted '
                "by a user",
            )
        if self._in_use(group):
            raise AwsError(
                "DependencyViolation",
                f"resource {group.id} has a dependent object",
            )
        result: ActionResult = super().delete_security_group()
        return result

    def describe_security_groups(self) -> ActionResult:
        for one in self._get_param("GroupIds", []):
            _check_id(one)
            if self.ec2_backend.get_security_group_from_id(one) is None:
                raise _no_such_group(one)
        for one in self._get_param("Filters", []):
            name = one.get("Name", "")
            self._check_filter(name)
        result: ActionResult = super().describe_security_groups()
        return _paged(result, dict(self.params))

    def authorize_security_group_ingress(self) -> ActionResult:
        return self._authorize(
            "ingress_rules", self.ec2_backend.authorize_security_group_ingress
        )

    def authorize_security_group_egress(self) -> ActionResult:
        return self._authorize(
            "egress_rules", self.ec2_backend.authorize_security_group_egress
        )

    def revoke_security_group_ingress(self) -> ActionResult:
        """Removes rules, or none after an error.

        "RevokeSecurityGroupIngress": in a default VPC, rules that the group does not have
        are no error. The answer lists them.
        """
        group = self._group()
        self.error_on_dryrun()
        named = self._rules_by_id(group) or self._rules_by_value(group)
        unknown = [rule for rule in named if rule not in group.ingress_rules]
        if unknown and not self.ec2_backend.vpcs[group.vpc_id].is_default:
            raise AwsError(
                "InvalidPermission.NotFound",
                "The specified rule does not exist in this security group.",
            )
        group.ingress_rules = [one for one in group.ingress_rules if one not in named]
        self.here.groups_changed()
        permissions = [_permission(rule) for rule in unknown]
        return Answer({"Return": True, "UnknownIpPermissions": permissions})

    def modify_security_group_rules(self) -> ActionResult:
        result: ActionResult = super().modify_security_group_rules()
        self.here.groups_changed()
        return result

    def _authorize(self, direction: str, add: Callable[..., Any]) -> ActionResult:
        """Adds all rules of the request. After an error it adds none."""
        group = self._group()
        self.error_on_dryrun()
        before = list(getattr(group, direction))
        added: list[Any] = []
        try:
            for rules in self._process_rules_from_querystring():
                added += add(**rules)[0]
        except Exception:
            setattr(group, direction, before)
            raise
        self.here.groups_changed()
        return ActionResult({"Return": True, "SecurityGroupRules": added})

    def _rules_by_id(self, group: Any) -> list[Any]:
        known = {rule.id: rule for rule in group.ingress_rules}
        ids = self._get_param("SecurityGroupRuleIds", [])
        for one in ids:
            if one not in known:
                raise AwsError(
                    "InvalidSecurityGroupRuleId.NotFound",
                    f"The security group rule ID '{one}' does not exist",
                )
        return [known[one] for one in ids]

    def _rules_by_value(self, group: Any) -> list[Any]:
        backend = self.ec2_backend
        return [
            rule
            for given in self._process_rules_from_querystring()
            for rule in backend._iterate_security_rules(
                given["ip_protocol"],
                group.id,
                given["from_port"],
                given["to_port"],
                given["ip_ranges"],
                backend._add_source_group(given["source_groups"], group.vpc_id),
                given["prefix_list_ids"],
            )
        ]

    def _process_rules_from_querystring(self) -> Iterator[dict[str, Any]]:
        """The rules of a request. EC2 stores the canonical form of an address range:
        "AuthorizeSecurityGroupIngress", CidrIp."""
        for rules in super()._process_rules_from_querystring():
            ranges = [_canonical(one) for one in rules["ip_ranges"]]
            yield rules | {"ip_ranges": ranges}

    def _group(self) -> Any:
        group_id, name = self._get_param("GroupId"), self._get_param("GroupName")
        if group_id:
            _check_id(group_id)
            group = self.ec2_backend.get_security_group_from_id(group_id)
        else:
            vpc = self.ec2_backend.default_vpc.id
            group = self.ec2_backend.get_security_group_from_name(name, vpc)
        if group is None:
            raise _no_such_group(group_id or name)
        return group

    def _in_use(self, group: Any) -> bool:
        """Whether an instance that is not terminated, an interface, or a rule of
        another group uses the group."""
        backend = self.ec2_backend
        if any(group in one.security_groups for one in self.here.instances.values()):
            return True
        if any(group in nic.group_set for nic in backend.enis.values()):
            return True
        return any(
            (rule.source_group or {}).get("GroupId") == group.id
            for groups in backend.groups.values()
            for other in groups.values()
            if other is not group
            for rule in (*other.ingress_rules, *other.egress_rules)
        )

    def _check_filter(self, name: str) -> None:
        if name.startswith("tag:") or name in ("tag-key", "tag-value"):
            return
        sample = next(iter(self.ec2_backend.groups[self.ec2_backend.default_vpc.id]))
        default = self.ec2_backend.get_security_group_from_id(sample)
        if name not in default.filters:
            raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")


def _canonical(address_range: dict[str, str]) -> dict[str, str]:
    """The range without host bits. The text of an invalid one stays as it is."""
    canonical = dict(address_range)
    for field in ("CidrIp", "CidrIpv6"):
        if field in canonical:
            try:
                canonical[field] = str(ip_network(canonical[field], strict=False))
            except ValueError:
                pass
    return canonical


def _permission(rule: Any) -> dict[str, Any]:
    """A rule as an IpPermission of its own."""
    ranges = dict(rule.ip_range)
    group, prefixes = rule.source_group, rule.prefix_list_id
    return {
        "IpProtocol": rule.ip_protocol,
        "FromPort": rule.from_port,
        "ToPort": rule.to_port,
        "IpRanges": [ranges] if "CidrIp" in ranges else [],
        "Ipv6Ranges": [ranges] if "CidrIpv6" in ranges else [],
        "UserIdGroupPairs": [group] if group else [],
        "PrefixListIds": [{"PrefixListId": prefixes}] if prefixes else [],
    }


# The fields of an IpPermission with what the rule lets in.
_SOURCES = ("IpRanges", "Ipv6Ranges", "UserIdGroupPairs", "PrefixListIds")


def _check_id(group_id: str) -> None:
    if not group_id.startswith("sg-"):
        raise AwsError(
            "InvalidGroupId.Malformed", f'Invalid id: "{group_id}" (expecting "sg-...")'
        )


def _no_such_group(name: str) -> AwsError:
    return AwsError(
        "InvalidGroup.NotFound", f"The security group '{name}' does not exist"
    )


def _paged(result: ActionResult, parameters: dict[str, Any]) -> ActionResult:
    document: Any = result.result
    groups = sorted(document["SecurityGroups"], key=lambda group: group.id)
    pairs = list(enumerate(groups))
    shown, token = page(pairs, parameters, 5, 1000, None, lambda pair: pair[0])
    # moto's serializer needs more than a millisecond for each group.
    views = [_view(group) for _, group in shown]
    return Answer({"SecurityGroups": views, "NextToken": token})


def _view(group: Any) -> dict[str, Any]:
    return {
        "Description": group.description,
        "GroupId": group.id,
        "GroupName": group.name,
        "IpPermissions": _permissions(group.ingress_rules),
        "IpPermissionsEgress": _permissions(group.egress_rules),
        "OwnerId": group.owner_id,
        "SecurityGroupArn": group.arn,
        "Tags": tag_list(group.ec2_backend, group.id),
        "VpcId": group.vpc_id,
    }


def _permissions(rules: list[Any]) -> list[dict[str, Any]]:
    """The rules, grouped by protocol and ports, as EC2 shows them."""
    grouped: dict[tuple[Any, ...], dict[str, Any]] = {}
    for rule in rules:
        one = _permission(rule)
        ports = (one["IpProtocol"], one["FromPort"], one["ToPort"])
        known = grouped.setdefault(ports, one)
        if known is not one:
            for field in _SOURCES:
                known[field] = [*known[field], *one[field]]
    return list(grouped.values())
