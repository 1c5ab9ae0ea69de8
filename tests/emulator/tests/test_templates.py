"""Launch templates: their lists are complete, in pages."""

from conftest import IMAGE


def test_templates_are_listed_in_pages_and_none_is_left_out(ec2):
    made = set()
    for number in range(25):
        answer = ec2.create_launch_template(
            LaunchTemplateName=f"template-{number}",
            LaunchTemplateData={"ImageId": IMAGE},
        )
        made.add(answer["LaunchTemplate"]["LaunchTemplateId"])
    assert ids(ec2.describe_launch_templates()) == made
    pages = ec2.get_paginator("describe_launch_templates").paginate(
        PaginationConfig={"PageSize": 10}
    )
    listed = [ids(page) for page in pages]
    assert [len(page) for page in listed] == [10, 10, 5]
    assert set().union(*listed) == made


def test_a_template_is_found_by_its_name_among_many(ec2):
    for number in range(20):
        ec2.create_launch_template(
            LaunchTemplateName=f"template-{number}",
            LaunchTemplateData={"ImageId": IMAGE},
        )
    named = {"Name": "launch-template-name", "Values": ["template-19"]}
    (found,) = ec2.describe_launch_templates(Filters=[named])["LaunchTemplates"]
    assert found["LaunchTemplateName"] == "template-19"


def ids(answer):
    return {one["LaunchTemplateId"] for one in answer["LaunchTemplates"]}
