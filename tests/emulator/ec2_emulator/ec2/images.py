"""The public images of the emulated regions, and the SSM parameters that name them.

Ids are stable: `ami-0000000000<region>c0de<image>`, both hexadecimal.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moto.ec2.models.amis import Ami
from moto.ssm.models import Parameter
from moto.utilities.utils import load_resource

REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1")

AMAZON = "898082745236"
CANONICAL = "099720109477"

_RELEASED = datetime(2026, 9, 18, 8, 30)
_STAMP = _RELEASED.strftime("%Y%m%d")
_DEEP_LEARNING = "/aws/service/deeplearning/ami"


@dataclass(frozen=True)
class Image:
    """A public image. `root_gib` is the size of its root snapshot."""

    number: int
    name: str
    parameter: str
    owner: str = AMAZON
    alias: str = "amazon"
    architecture: str = "x86_64"
    root_device: str = "/dev/sda1"
    root_gib: int = 75

    def id_in(self, region: str) -> str:
        return f"ami-0000000000{REGIONS.index(region):x}c0de{self.number:02x}"


def _base(number: int, system: str, slug: str, root: str = "/dev/sda1") -> Image:
    return Image(
        number,
        f"Deep Learning Base OSS Nvidia Driver GPU AMI ({system}) {_STAMP}",
        f"{_DEEP_LEARNING}/x86_64/base-oss-nvidia-driver-gpu-{slug}/latest/ami-id",
        root_device=root,
    )


def _single_cuda(number: int, version: str) -> Image:
    return Image(
        number,
        f"Deep Learning Base AMI with Single CUDA (Ubuntu {version}) {_STAMP}",
        f"{_DEEP_LEARNING}/x86_64/base-with-single-cuda-ubuntu-{version}/latest/ami-id",
    )


def _pytorch(
    number: int,
    release: str,
    system: str,
    slug: str,
    root: str = "/dev/sda1",
    architecture: str = "x86_64",
) -> Image:
    kind = (
        "ARM64 AMI OSS Nvidia Driver"
        if architecture == "arm64"
        else "OSS Nvidia Driver AMI"
    )
    return Image(
        number,
        f"Deep Learning {kind} GPU PyTorch {release} ({system}) {_STAMP}",
        f"{_DEEP_LEARNING}/{architecture}/oss-nvidia-driver-gpu-pytorch-{release}-"
        f"{slug}/latest/ami-id",
        architecture=architecture,
        root_device=root,
    )


# The image whose instances boot, if the emulator was given machines.
BOOTING = 0xB0

_UBUNTU_24 = ("Ubuntu 24.04", "ubuntu-24.04")
_UBUNTU_22 = ("Ubuntu 22.04", "ubuntu-22.04")
_AL2023 = ("Amazon Linux 2023", "amazon-linux-2023", "/dev/xvda")

IMAGES = (
    _base(0x01, *_UBUNTU_24),
    _base(0x02, *_UBUNTU_22),
    _base(0x03, *_AL2023),
    _single_cuda(0x04, "24.04"),
    _single_cuda(0x05, "22.04"),
    _pytorch(0x11, "2.7", *_UBUNTU_22),
    _pytorch(0x12, "2.8", *_UBUNTU_24),
    _pytorch(0x13, "2.8", *_AL2023),
    _pytorch(0x14, "2.9", *_UBUNTU_24),
    _pytorch(0x15, "2.9", *_AL2023),
    _pytorch(0x16, "2.10", *_UBUNTU_24),
    _pytorch(0x17, "2.10", *_AL2023),
    _pytorch(0x18, "2.12", *_UBUNTU_24),
    _pytorch(0x19, "2.12", *_UBUNTU_24, architecture="arm64"),
    Image(
        0x20,
        f"ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-{_STAMP}",
        "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/"
        "ami-id",
        owner=CANONICAL,
        alias="",
        root_gib=8,
    ),
    Image(
        BOOTING,
        f"Emulated GPU image that boots, with PyTorch {_STAMP}",
        "/gpu-workspaces/emulator/image-that-boots/ami-id",
        root_gib=8,
    ),
)


def boots(image_id: str) -> bool:
    return image_id.startswith("ami-") and image_id.endswith(f"c0de{BOOTING:02x}")


class PublicImage(Ami):
    """A moto image with the root volume of the real image."""

    def __init__(self, backend: Any, image: Image, region: str) -> None:
        super().__init__(
            backend,
            image.id_in(region),
            name=image.name,
            description=image.name,
            owner_id=image.owner,
            owner_alias=image.alias or None,
            public=True,
            virtualization_type="hvm",
            architecture=image.architecture,
            creation_date=_RELEASED,
            image_location=f"{image.alias or image.owner}/{image.name}",
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name=image.root_device,
            region_name=f"{region}a",
        )
        self.ebs_snapshot.volume.size = image.root_gib

    @property
    def block_device_mappings(self) -> list[dict[str, Any]]:
        return [
            {
                "DeviceName": self.root_device_name,
                "Ebs": {
                    "SnapshotId": self.ebs_snapshot.id,
                    "VolumeSize": self.ebs_snapshot.volume.size,
                    "DeleteOnTermination": True,
                    "VolumeType": "gp3",
                    "Iops": 3000,
                    "Throughput": 125,
                    "Encrypted": False,
                },
            }
        ]


def load_images(ec2_backend: Any) -> None:
    """Registers the public images of the backend's region."""
    region = ec2_backend.region_name
    if region in REGIONS:
        for image in IMAGES:
            ec2_backend.amis[image.id_in(region)] = PublicImage(
                ec2_backend, image, region
            )
    # The images that moto's own SSM parameters name, so that those can be launched.
    try:
        amazon_linux = load_resource(f"ec2/resources/latest_amis/{region}.json")
    except FileNotFoundError:
        return
    for entry in amazon_linux:
        known = {k: v for k, v in entry.items() if k != "creation_date"}
        known["owner_alias"] = "amazon"
        ec2_backend.amis[entry["ami_id"]] = Ami(ec2_backend, **known)


def load_parameters(ssm_backend: Any) -> None:
    """Publishes the images' ids as AWS's public SSM parameters do.

    It writes into moto's backend, because PutParameter refuses names under /aws, as on
    AWS.
    """
    region = ssm_backend.region_name
    if region not in REGIONS:
        return
    for image in IMAGES:
        ssm_backend._parameters[image.parameter].append(
            Parameter(  # type: ignore[abstract]  # as moto itself does
                account_id=ssm_backend.account_id,
                name=image.parameter,
                value=image.id_in(region),
                parameter_type="String",
                description=None,
                allowed_pattern=None,
                keyid=None,
                last_modified_date=_RELEASED,
                version=1,
                data_type="aws:ec2:image",
            )
        )
