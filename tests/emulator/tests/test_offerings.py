"""Instance types, zones and prices."""

from datetime import UTC, datetime, timedelta

from conftest import refused


def zones(ec2, instance_type):
    answer = ec2.describe_instance_type_offerings(
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": [instance_type]}],
    )
    return [one["Location"] for one in answer["InstanceTypeOfferings"]]


def test_offerings_differ_by_zone(ec2):
    assert "us-east-1e" not in zones(ec2, "g5.xlarge")
    assert "us-east-1a" in zones(ec2, "g5.xlarge")
    assert zones(ec2, "zz9.large") == []


def test_offerings_come_in_pages(ec2):
    request = {"LocationType": "availability-zone", "MaxResults": 1000}
    first = ec2.describe_instance_type_offerings(**request)
    assert len(first["InstanceTypeOfferings"]) == 1000
    second = ec2.describe_instance_type_offerings(
        NextToken=first["NextToken"], **request
    )
    assert second["InstanceTypeOfferings"][0] not in first["InstanceTypeOfferings"]


def test_offerings_take_wildcards(ec2):
    answer = ec2.describe_instance_type_offerings(
        Filters=[{"Name": "instance-type", "Values": ["g4dn.*"]}]
    )
    types = {one["InstanceType"] for one in answer["InstanceTypeOfferings"]}
    assert "g4dn.xlarge" in types
    assert all(one.startswith("g4dn.") for one in types)


def test_gpu_types_say_what_gpus_they_have(ec2):
    wanted = ["g4dn.xlarge", "g5.12xlarge", "g6.xlarge", "g6e.xlarge", "p5.48xlarge"]
    shown = {
        one["InstanceType"]: one["GpuInfo"]["Gpus"][0]
        for one in ec2.describe_instance_types(InstanceTypes=wanted)["InstanceTypes"]
    }
    assert {name: (gpu["Name"], gpu["Count"]) for name, gpu in shown.items()} == {
        "g4dn.xlarge": ("T4", 1),
        "g5.12xlarge": ("A10G", 4),
        "g6.xlarge": ("L4", 1),
        "g6e.xlarge": ("L40S", 1),
        "p5.48xlarge": ("H100", 8),
    }


def test_types_come_in_pages_of_a_hundred(ec2):
    first = ec2.describe_instance_types()
    second = ec2.describe_instance_types(NextToken=first["NextToken"])
    pages = [
        {one["InstanceType"] for one in page["InstanceTypes"]}
        for page in (first, second)
    ]
    assert [len(page) for page in pages] == [100, 100]
    assert not pages[0] & pages[1]


def test_an_unknown_type_is_invalid(ec2):
    status, code, message = refused(
        ec2.describe_instance_types, InstanceTypes=["zz9.large"]
    )
    assert (status, code) == (400, "InvalidInstanceType")
    assert "[zz9.large]" in message


def test_types_are_filtered_by_what_they_are(ec2):
    answer = ec2.describe_instance_types(
        Filters=[
            {"Name": "instance-type", "Values": ["g5*"]},
            {"Name": "vcpu-info.default-vcpus", "Values": ["4"]},
            {"Name": "processor-info.supported-architecture", "Values": ["x86_64"]},
        ]
    )
    assert [one["InstanceType"] for one in answer["InstanceTypes"]] == ["g5.xlarge"]


def prices(ec2, **request):
    return ec2.describe_spot_price_history(
        ProductDescriptions=["Linux/UNIX"], **request
    )["SpotPriceHistory"]


def test_there_is_one_current_price_for_each_zone(ec2):
    now = datetime.now(UTC)
    found = prices(ec2, InstanceTypes=["g5.xlarge"], StartTime=now, EndTime=now)
    assert [one["AvailabilityZone"] for one in found] == zones(ec2, "g5.xlarge")
    assert all(0.30 <= float(one["SpotPrice"]) / 1.006 <= 0.40 for one in found)
    assert len({one["SpotPrice"] for one in found}) > 1


def test_prices_are_the_same_whenever_they_are_asked_for(ec2):
    at = datetime.now(UTC) - timedelta(days=3)
    request = {"InstanceTypes": ["g4dn.xlarge"], "StartTime": at, "EndTime": at}
    assert prices(ec2, **request) == prices(ec2, **request)


def test_a_zone_without_the_type_has_no_price(ec2):
    assert prices(ec2, InstanceTypes=["g5.xlarge"], AvailabilityZone="us-east-1e") == []
    windows = ec2.describe_spot_price_history(
        InstanceTypes=["g5.xlarge"], ProductDescriptions=["Windows"]
    )
    assert windows["SpotPriceHistory"] == []


def test_a_history_reaches_back_to_the_price_in_force_at_its_start(ec2):
    end = datetime.now(UTC)
    start = end - timedelta(hours=13)
    found = prices(
        ec2,
        InstanceTypes=["g5.xlarge"],
        AvailabilityZone="us-east-1a",
        StartTime=start,
        EndTime=end,
    )
    times = [one["Timestamp"] for one in found]
    assert times == sorted(times, reverse=True)
    assert times[-1] <= start < times[-2]


def test_prices_come_in_pages(ec2):
    first = ec2.describe_spot_price_history(InstanceTypes=["g5.xlarge"], MaxResults=5)
    assert len(first["SpotPriceHistory"]) == 5
    second = ec2.describe_spot_price_history(
        InstanceTypes=["g5.xlarge"], MaxResults=5, NextToken=first["NextToken"]
    )
    assert second["SpotPriceHistory"][0] not in first["SpotPriceHistory"]
