//! AWS's answers as people recorded them in public, written anew in the form of the wire. Each test
//! names its source.

use provider_core::{ErrorClass, GroupRules, Market, Offering, Refusal};

use crate::instances::tests::KEYS;
use crate::wire::Wire;
use crate::{
    Access, Answer, AwsEc2, Credentials, Ec2 as _, Ec2Error, LaunchPlace, LaunchRequest,
    SnapshotRequest, Tags, VolumeRequest, connect,
};

/// EC2 that gives one answer to every request.
async fn ec2(status: u16, body: &str) -> AwsEc2 {
    answering(vec![(status, body.to_owned())]).await
}

/// EC2 that gives these answers one after the other, and then the last one again.
async fn answering(answers: Vec<(u16, String)>) -> AwsEc2 {
    let access = Access {
        credentials: Credentials::Unsigned,
        roles: Vec::new(),
        endpoint: Some(Wire::answering(answers).endpoint),
    };
    connect(&access, "us-east-1", KEYS, "cluster-uid").await
}

/// EC2 that refuses every request.
async fn refusing(code: &str, message: &str) -> AwsEc2 {
    ec2(400, &refusal(code, message)).await
}

/// EC2 whose first answer is an error of its own. It may have carried the request out. It refuses the
/// second request for a limit.
async fn failing_once(code: &str) -> AwsEc2 {
    let first = refusal("InternalError", "An internal error has occurred");
    answering(vec![(500, first), (400, refusal(code, ""))]).await
}

fn refusal(code: &str, message: &str) -> String {
    format!(
        "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>\
         <RequestID>7cbb6e5d-0f2f-4b1c-8d0c-2e1bb9a3c1aa</RequestID></Response>"
    )
}

/// One entry of a fleet's errors.
fn fleet_error(kind: &str, place: &str, code: &str, message: &str) -> String {
    format!(
        "<item><errorCode>{code}</errorCode><errorMessage>{message}</errorMessage>\
         <launchTemplateAndOverrides><launchTemplateSpecification>\
         <launchTemplateId>lt-0a1b2c3d4e5f60718</launchTemplateId><version>1</version>\
         </launchTemplateSpecification><overrides><instanceType>{kind}</instanceType>{place}\
         </overrides></launchTemplateAndOverrides><lifecycle>spot</lifecycle></item>"
    )
}

fn in_subnet(id: &str) -> String {
    format!("<subnetId>{id}</subnetId>")
}

fn in_zone(zone: &str) -> String {
    format!("<availabilityZone>{zone}</availabilityZone>")
}

/// The answer of `CreateFleet` with these errors and instances.
async fn fleet(errors: &str, instances: &str) -> Answer {
    let body = format!(
        "<CreateFleetResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>1c0b7b9a-5b1a-4f0e-8f0a-0a5f3f7d6f6b</requestId>\
         <fleetId>fleet-5a6b7c8d</fleetId><errorSet>{errors}</errorSet>\
         <fleetInstanceSet>{instances}</fleetInstanceSet></CreateFleetResponse>"
    );
    ec2(200, &body).await.launch(&request()).await.unwrap()
}

fn request() -> LaunchRequest {
    let places = ["a", "b", "c"].map(|zone| LaunchPlace {
        instance_type: "g4dn.xlarge".into(),
        zone: format!("us-east-1{zone}"),
        subnet_id: format!("subnet-{zone}"),
    });
    LaunchRequest {
        token: "token".into(),
        template: "template".into(),
        count: 1,
        market: Market::Spot,
        places: places.into(),
        tags: Tags::new(),
    }
}

fn volume() -> VolumeRequest {
    VolumeRequest {
        token: "token".into(),
        zone: "us-east-1a".into(),
        size_gib: 100,
        snapshot_id: None,
        kms_key_id: None,
        tags: Tags::new(),
    }
}

fn snapshot() -> SnapshotRequest {
    SnapshotRequest {
        volume_id: "vol-1".into(),
        description: String::new(),
        tags: Tags::new(),
    }
}

fn zones(answer: &Answer) -> Vec<&str> {
    let refused = answer.refusals.iter();
    refused
        .map(|(offering, _)| offering.zone.as_str())
        .collect()
}

fn classes(answer: &Answer) -> Vec<ErrorClass> {
    answer
        .refusals
        .iter()
        .map(|(_, refusal)| refusal.class)
        .collect()
}

/// hashicorp/packer#9946.
#[tokio::test]
async fn a_refused_zone_beside_a_granted_instance() {
    let said = "Your requested instance type (g4dn.xlarge) is not supported in your requested \
                Availability Zone (us-east-1a). Please retry your request by not specifying an \
                Availability Zone or choosing us-east-1b, us-east-1c.";
    let refused = fleet_error(
        "g4dn.xlarge",
        &in_subnet("subnet-a"),
        "InvalidFleetConfiguration",
        said,
    );
    let granted = "<item><launchTemplateAndOverrides><overrides><instanceType>g4dn.xlarge\
                   </instanceType><subnetId>subnet-b</subnetId></overrides>\
                   </launchTemplateAndOverrides><lifecycle>spot</lifecycle><instanceIds>\
                   <item>i-0123456789abcdef0</item></instanceIds><instanceType>g4dn.xlarge\
                   </instanceType></item>";
    let answer = fleet(&refused, granted).await;
    assert_eq!(zones(&answer), ["us-east-1a"]);
    assert_eq!(classes(&answer), [ErrorClass::Capacity]);
    assert!(answer.refusals[0].1.is_unsold());
    let launched = &answer.launched[0];
    assert_eq!(launched.id, "i-0123456789abcdef0");
    assert_eq!(launched.offering.zone, "us-east-1b");
}

/// aws/karpenter-provider-aws#1219.
#[tokio::test]
async fn three_zones_that_do_not_have_the_type_on_spot() {
    let refused = ["a", "b", "c"].map(|zone| {
        let said = format!(
            "Your requested instance type ((null)) is not supported in your requested Availability \
             Zone (us-east-1{zone})."
        );
        let place = in_subnet(&format!("subnet-{zone}"));
        fleet_error("g4dn.xlarge", &place, "InvalidFleetConfiguration", &said)
    });
    let answer = fleet(&refused.concat(), "").await;
    assert_eq!(zones(&answer), ["us-east-1a", "us-east-1b", "us-east-1c"]);
    assert_eq!(classes(&answer), [ErrorClass::Capacity; 3]);
}

/// kubernetes-sigs/karpenter#2275.
#[tokio::test]
async fn a_lack_of_capacity_in_which_each_zone_names_the_others() {
    let refused = [("a", "us-east-1b"), ("b", "us-east-1a")].map(|(zone, other)| {
        let said = format!(
            "We currently do not have sufficient g4dn.xlarge capacity in the Availability Zone you \
             requested (us-east-1{zone}). Our system will be working on provisioning additional \
             capacity. You can currently get g4dn.xlarge capacity by not specifying an \
             Availability Zone in your request or choosing {other}."
        );
        let place = in_zone(&format!("us-east-1{zone}"));
        fleet_error("g4dn.xlarge", &place, "InsufficientInstanceCapacity", &said)
    });
    let answer = fleet(&refused.concat(), "").await;
    assert_eq!(zones(&answer), ["us-east-1a", "us-east-1b"]);
    assert_eq!(classes(&answer), [ErrorClass::Capacity; 2]);
    for (_, refusal) in &answer.refusals {
        assert!(
            !refusal.message.contains("You can currently"),
            "{refusal:?}"
        );
        assert!(!refusal.is_unsold());
    }
}

/// aws/karpenter-provider-aws#5850.
#[tokio::test]
async fn a_parameter_that_no_place_takes() {
    let said = "Value (launch-template) for parameter iamInstanceProfile.name is invalid.";
    let refused = ["a", "b", "c"].map(|zone| {
        let place = in_subnet(&format!("subnet-{zone}"));
        fleet_error("g4dn.xlarge", &place, "InvalidParameterValue", said)
    });
    let answer = fleet(&refused.concat(), "").await;
    assert_eq!(classes(&answer), [ErrorClass::Configuration; 3]);
}

/// aws/karpenter-provider-aws#7370.
#[tokio::test]
async fn a_denial_inside_an_answer_that_succeeded() {
    let said = "You are not authorized to perform this operation. User: \
                arn:aws:sts::111111111111:assumed-role/pools/1795267200 is not authorized to \
                perform: ec2:RunInstances on resource: \
                arn:aws:ec2:us-east-1:111111111111:instance/* because no identity-based policy \
                allows the ec2:RunInstances action. Encoded authorization failure message: 4wTX";
    let place = in_subnet("subnet-a");
    let refused = fleet_error("g4dn.xlarge", &place, "UnauthorizedOperation", said);
    let answer = fleet(&refused, "").await;
    assert_eq!(classes(&answer), [ErrorClass::Denied]);
    let message = &answer.refusals[0].1.message;
    assert!(
        message.contains("assumed-role/pools is not authorized"),
        "{message}"
    );
    assert!(
        message.ends_with("allows the ec2:RunInstances action."),
        "{message}"
    );
}

/// "Work with EC2 Fleets" in the Amazon EC2 User Guide: a zone, no subnet, and an empty message.
#[tokio::test]
async fn an_error_with_a_zone_and_without_a_message() {
    let place = in_zone("us-east-1c");
    let refused = fleet_error("g4dn.xlarge", &place, "InsufficientInstanceCapacity", "");
    let answer = fleet(&refused, "").await;
    let offering = Offering {
        instance_type: "g4dn.xlarge".into(),
        zone: "us-east-1c".into(),
        market: Market::Spot,
    };
    let refusal = Refusal {
        class: ErrorClass::Capacity,
        code: "InsufficientInstanceCapacity".into(),
        message: String::new(),
    };
    assert_eq!(answer.refusals, [(offering, refusal)]);
}

/// runs-on/runs-on#88.
#[tokio::test]
async fn an_account_that_may_ask_for_no_more_fleets() {
    let said = "You have reached your quota for maximum Fleet Requests for this account.";
    let ec2 = refusing("MaxFleetCountExceeded", said).await;
    let error = ec2.launch(&request()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Quota);
    let advice = error.refusal().limit_to_raise(&Offering {
        instance_type: "g4dn.xlarge".into(),
        zone: "us-east-1a".into(),
        market: Market::Spot,
    });
    assert!(advice.starts_with("ask AWS Support"), "{advice}");
}

/// runs-on/runs-on#251.
#[tokio::test]
async fn a_token_that_was_used_with_other_parameters() {
    let said = "Client token already used before with different parameters.";
    let ec2 = refusing("IdempotentParameterMismatch", said).await;
    assert!(
        ec2.launch(&request())
            .await
            .unwrap_err()
            .is_token_mismatch()
    );
}

/// boto/boto3#4406.
#[tokio::test]
async fn a_token_whose_instance_has_ended() {
    let said = "The request uses the same client token as a previous request for which the \
                instance has been terminated.";
    let ec2 = refusing("IdempotentInstanceTerminated", said).await;
    assert!(ec2.launch(&request()).await.unwrap_err().is_token_over());
}

/// cloud-custodian/cloud-custodian, `test_security_group_set_permissions`.
#[tokio::test]
async fn a_rule_that_is_there_already() {
    let said = "the specified rule \"peer: 203.0.113.0/24, TCP, from port: 22, to port: 22, ALLOW\" \
                already exists";
    let ec2 = refusing("InvalidPermission.Duplicate", said).await;
    let rules = GroupRules {
        ssh_cidrs: ["203.0.113.0/24".to_owned()].into(),
        ..GroupRules::default()
    };
    assert_eq!(ec2.authorize("sg-1", &rules).await, Ok(()));
}

/// kubernetes-sigs/aws-ebs-csi-driver#3010: the volume under an unusable key is gone, and its token
/// is spent.
#[tokio::test]
async fn the_token_of_a_volume_that_ec2_took_back() {
    let said = "The client token you have provided is associated with a resource that has been \
                already deleted. Please use a different client token.";
    let ec2 = refusing("IdempotentParameterMismatch", said).await;
    let error: Ec2Error = ec2.create_volume(&volume()).await.unwrap_err();
    assert!(error.is_token_mismatch());
}

/// "Deprecate an AMI" in the Amazon EC2 User Guide, and the account's allowed AMIs.
#[tokio::test]
async fn an_image_that_the_account_may_not_see() {
    let said = "The image id '[ami-0123456789abcdef0]' does not exist";
    let ec2 = refusing("InvalidAMIID.NotFound", said).await;
    assert_eq!(ec2.image("ami-0123456789abcdef0").await, Ok(None));
}

/// "Amazon EBS volume limits": a snapshot is made of one volume at a time.
#[tokio::test]
async fn a_volume_of_which_too_many_snapshots_are_made() {
    let said = "Maximum allowed in-progress snapshots for a single volume exceeded.";
    let ec2 = refusing("ConcurrentSnapshotLimitExceeded", said).await;
    let error = ec2.create_snapshot(&snapshot()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Quota);
}

/// The example of `DescribeInstanceStatus` in the Amazon EC2 API Reference, with a completed event as
/// "Scheduled events for Amazon EC2 instances" describes it.
#[tokio::test]
async fn an_instance_that_aws_is_to_retire() {
    let ec2 = ec2(
        200,
        "<DescribeInstanceStatusResponse><instanceStatusSet><item>\
         <instanceId>i-0123456789abcdef0</instanceId><eventsSet>\
         <item><instanceEventId>instance-event-1</instanceEventId><code>instance-reboot</code>\
         <description>[Completed] The instance is scheduled for a reboot</description>\
         <notBefore>2026-11-20T13:00:00.000Z</notBefore></item>\
         <item><instanceEventId>instance-event-2</instanceEventId><code>instance-retirement</code>\
         <description>The instance is running on degraded hardware</description>\
         <notBefore>2026-12-05T13:00:00.000Z</notBefore></item>\
         </eventsSet></item></instanceStatusSet></DescribeInstanceStatusResponse>",
    )
    .await;
    let scheduled = ec2.checks().await.unwrap().scheduled;
    let event = &scheduled["i-0123456789abcdef0"];
    assert_eq!(event.code, "instance-retirement");
    assert_eq!(event.not_before, "2026-12-05T13:00:00Z".parse().ok());
}

/// aws-ebs-csi-driver `pkg/cloud/cloud.go`: EC2 looks for the limit before it looks for the token. The
/// caller has to learn of the first answer, because EC2 may have made the volume then.
#[tokio::test]
async fn a_volume_that_ec2_may_have_made_is_not_asked_for_twice() {
    let ec2 = failing_once("VolumeLimitExceeded").await;
    let error = ec2.create_volume(&volume()).await.unwrap_err();
    assert_eq!(error.code, "InternalError");
}

/// The same for a fleet, whose order of the two is not documented.
#[tokio::test]
async fn a_launch_that_ec2_may_have_made_is_not_asked_for_twice() {
    let ec2 = failing_once("MaxSpotInstanceCountExceeded").await;
    let error = ec2.launch(&request()).await.unwrap_err();
    assert_eq!(error.code, "InternalError");
}

/// `CreateSnapshot` has no token: each attempt may make a snapshot.
#[tokio::test]
async fn a_snapshot_that_ec2_may_have_made_is_not_asked_for_twice() {
    let ec2 = failing_once("ConcurrentSnapshotLimitExceeded").await;
    let error = ec2.create_snapshot(&snapshot()).await.unwrap_err();
    assert_eq!(error.code, "InternalError");
}

/// Reads are repeated at once.
#[tokio::test]
async fn a_question_that_ec2_fails_to_answer_is_asked_again() {
    let ec2 = failing_once("InvalidAMIID.NotFound").await;
    assert_eq!(ec2.image("ami-0123456789abcdef0").await, Ok(None));
}

/// "Instance console output" in the Amazon EC2 User Guide: an instance on Xen has no latest output.
#[tokio::test]
async fn a_console_that_has_no_latest_output() {
    let refused = refusal(
        "UnsupportedOperation",
        "This instance type does not support retrieving the latest console logs. Supported instance \
         types: ...",
    );
    let output = "<GetConsoleOutputResponse><instanceId>i-0123456789abcdef0</instanceId>\
                  <output>Ym9vdGVk</output></GetConsoleOutputResponse>";
    let ec2 = answering(vec![(400, refused), (200, output.to_owned())]).await;
    let console = ec2.console("i-0123456789abcdef0").await;
    assert_eq!(console.unwrap(), b"booted");
}

/// "Deprecate an AMI" in the Amazon EC2 User Guide.
#[tokio::test]
async fn an_image_that_is_deprecated() {
    let body = "<DescribeImagesResponse><imagesSet><item><imageId>ami-0123456789abcdef0</imageId>\
                <rootDeviceName>/dev/sda1</rootDeviceName>\
                <deprecationTime>2026-05-01T00:00:00.000Z</deprecationTime>\
                </item></imagesSet></DescribeImagesResponse>";
    let image = ec2(200, body).await.image("ami-0123456789abcdef0").await;
    let deprecated_at = image.unwrap().unwrap().deprecated_at;
    assert_eq!(deprecated_at, "2026-05-01T00:00:00Z".parse().ok());
}
