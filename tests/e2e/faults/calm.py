"""Checks that every pool is as its spec wants after the storm."""

from environment.cluster import condition, is_ready
from environment.objects import Object
from environment.ec2 import Instance, tags

from .account import POOL_UID, Account
from .fleet import Fleet, Wanted


def unsettled(fleet: Fleet, account: Account) -> dict[str, str]:
    """The pools that are not yet as their spec wants, by UID, with the reason."""
    stored = fleet.stored()
    of_pools: dict[str, dict[str, Instance]] = {}
    for id_, thing in account.things().items():
        of_pools.setdefault(tags(thing).get(POOL_UID, ""), {})[id_] = thing
    wrong = {}
    for pool in fleet.every():
        things = of_pools.get(pool.uid, {})
        if pool.is_deleted:
            why = _remains(stored.get(pool.uid), things)
        else:
            why = _differs(pool, stored[pool.uid], things, account)
        if why:
            wrong[pool.uid] = f"{pool.name}: {why}"
    return wrong


def waits_for_answer(pool: Object | None) -> bool:
    """Whether the pool has a launch without an answer of EC2. The provider does not
    repeat a launch of an earlier spec. It waits minutes for EC2 to list the instances
    (provider/core/src/launch.rs)."""
    status = (pool or {}).get("status", {}).get("atProvider", {})
    return any("answer" not in launch for launch in status.get("launches", []))


def _remains(stored: Object | None, things: dict[str, Instance]) -> str:
    if stored is None and not things:
        return ""
    synced = condition(stored, "Synced").get("message", "")
    return f"deleted, and there are {sorted(things)} and {'it' if stored else 'not it'}: {synced}"


def _differs(
    pool: Wanted, stored: Object, things: dict[str, Instance], account: Account
) -> str:
    live = {id_: one for id_, one in things.items() if id_.startswith("i-")}
    states = {id_: one["State"]["Name"] for id_, one in live.items()}
    if list(states.values()) != ["running"] * pool.target:
        launched = condition(stored, "Launched").get("message", "")
        return f"{states}, {pool.target} are wanted: {launched}"
    if not is_ready(stored):
        return f"not Ready: {condition(stored, 'Ready').get('message')}"
    if stored["status"]["atProvider"]["size"]["running"] != pool.target:
        return "the status counts otherwise"
    templates = [id_ for id_ in things if id_.startswith("lt-")]
    groups = [id_ for id_ in things if id_.startswith("sg-")]
    if len(templates) > 1 or len(groups) != 1:
        return f"{templates} and {groups}: one of each is needed"
    if pool.replaces_drift:
        return _drifted(pool, live, account)
    return ""


def _drifted(pool: Wanted, live: dict[str, Instance], account: Account) -> str:
    wanted = (pool.spec["image"]["id"], pool.spec.get("userData", ""))
    for id_, instance in live.items():
        has = (instance["ImageId"], _user_data(account, id_))
        if has != wanted:
            return f"{id_} has drifted: {has}, wanted {wanted}"
    return ""


def _user_data(account: Account, id_: str) -> str:
    answer = account.ec2.client.describe_instance_attribute(
        InstanceId=id_, Attribute="userData"
    )
    return account.ec2.user_data(id_) if answer.get("UserData") else ""
