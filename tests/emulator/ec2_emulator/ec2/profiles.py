"""The instance profile of a launch."""

from dataclasses import dataclass
from typing import Any

from moto.ec2.utils import random_iam_instance_profile_association_id

from .instance import EmulatedInstance


@dataclass
class ProfileAssociation:
    """Has the attributes of moto's class, for moto's operations on associations.

    moto's own class iterates over all instances of the region for each new association.
    """

    ec2_backend: Any
    association_id: str
    instance: EmulatedInstance
    instance_id: str
    iam_instance_profile: Any
    state: str = "associated"


def associate_profile(instance: EmulatedInstance, profile: Any) -> None:
    instance.ec2_backend.iam_instance_profile_associations[instance.id] = (
        ProfileAssociation(
            instance.ec2_backend,
            random_iam_instance_profile_association_id(),
            instance,
            instance.id,
            profile,
        )
    )
