//! Lists of instances, reduced to the fields that the provider needs.

use std::collections::BTreeMap;

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_instances::DescribeInstancesOutput;
use aws_sdk_ec2::types::{self, Filter, InstanceLifecycleType};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use provider_core::{
    Checks, Instance, InstanceState, Market, Offering, ScheduledEvent, stable_message,
};

use crate::tagging::{filter, tag_value};
use crate::{Ec2Error, TagKeys};

/// Half of EC2's largest page. The SDK parses a whole answer at once, in which an instance takes
/// tens of times as much memory as afterwards. AWS throttles calls without pages more strictly.
const PAGE: i32 = 500;
/// The codes of scheduled events ("`InstanceStatusEvent`" in the Amazon EC2 API Reference).
const EVENTS: [&str; 5] = [
    "instance-reboot",
    "instance-retirement",
    "instance-stop",
    "system-maintenance",
    "system-reboot",
];
/// The most values of one filter in a call ("Filtering in the Amazon EC2 API").
pub(crate) const FILTER_VALUES: usize = 200;
/// The most characters of a tag's value ("Tag restrictions" in the Amazon EC2 User Guide).
const TAG_VALUE_LIMIT: usize = 256;

/// Lists instances and maps each one with `keep`.
pub(crate) async fn list<T>(
    client: &Client,
    keys: &TagKeys,
    filters: Vec<Filter>,
    keep: impl Fn(Instance) -> T,
) -> Result<Vec<T>, Ec2Error> {
    describe(client, filters, |instance| read(instance, keys).map(&keep)).await
}

/// The states of the instances with these ids. Instances without the control plane's tags are
/// included.
pub(crate) async fn states(
    client: &Client,
    ids: &[String],
) -> Result<BTreeMap<String, InstanceState>, Ec2Error> {
    let mut states = BTreeMap::new();
    for ids in ids.chunks(FILTER_VALUES) {
        // The parameter for ids would fail the whole call for one unknown id.
        let filters = vec![filter("instance-id", ids)];
        states.extend(describe(client, filters, state_by_id).await?);
    }
    Ok(states)
}

/// Describes instances, and reads each one. A page of AWS's answer is many times as large as its
/// result, and is freed before the next page is fetched.
async fn describe<T>(
    client: &Client,
    filters: Vec<Filter>,
    read: impl Fn(&types::Instance) -> Option<T>,
) -> Result<Vec<T>, Ec2Error> {
    let mut pages = client
        .describe_instances()
        .set_filters(Some(filters))
        .into_paginator()
        .page_size(PAGE)
        .send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|e| Ec2Error::of("DescribeInstances", &e))?;
        found.extend(instances_in(&page).filter_map(&read));
    }
    Ok(found)
}

/// Describes the instances with these ids by naming them, and reads each one.
pub(crate) async fn named<T>(
    client: &Client,
    ids: &[String],
    read: impl Fn(&types::Instance) -> Option<T>,
) -> Result<Vec<T>, Ec2Error> {
    let mut calls = NamingCalls::of(ids);
    let mut found = Vec::new();
    while let Some(ids) = calls.next() {
        let call = client.describe_instances();
        let answer = call.set_instance_ids(Some(ids.to_vec())).send().await;
        match answer.map_err(|error| Ec2Error::of("DescribeInstances", &error)) {
            Ok(answer) => found.extend(instances_in(&answer).filter_map(&read)),
            Err(error) if error.is_not_found() => calls.divide(ids),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The calls that name all of the ids that EC2 knows. EC2 fails a call that names an unknown id, so
/// such a call is repeated with each half of its ids.
struct NamingCalls<'a>(Vec<&'a [String]>);

impl<'a> NamingCalls<'a> {
    fn of(ids: &'a [String]) -> Self {
        Self(ids.chunks(FILTER_VALUES).collect())
    }

    /// The ids of the next call.
    fn next(&mut self) -> Option<&'a [String]> {
        self.0.pop()
    }

    /// Notes that EC2 does not know one of these ids.
    fn divide(&mut self, ids: &'a [String]) {
        if ids.len() > 1 {
            let (first, second) = ids.split_at(ids.len() / 2);
            self.0.extend([first, second]);
        }
    }
}

fn instances_in(answer: &DescribeInstancesOutput) -> impl Iterator<Item = &types::Instance> {
    let reservations = answer.reservations().iter();
    reservations.flat_map(types::Reservation::instances)
}

fn state_by_id(instance: &types::Instance) -> Option<(String, InstanceState)> {
    let state = InstanceState::parse(instance.state()?.name()?.as_str())?;
    Some((instance.instance_id()?.to_owned(), state))
}

/// EC2 combines the filters of one call with AND, so each filter has a call of its own. Hardly any
/// instance passes such a filter, so the answer is small however many instances there are.
pub(crate) async fn checks(client: &Client) -> Result<Checks, Ec2Error> {
    let mut checks = Checks::default();
    for name in [
        "instance-status.status",
        "system-status.status",
        "attached-ebs-status.status",
    ] {
        let impaired = statuses(client, filter(name, ["impaired".to_owned()])).await?;
        let ids = impaired.into_iter().filter_map(|status| status.instance_id);
        checks.impaired.extend(ids);
    }
    let scheduled = statuses(client, filter("event.code", EVENTS.map(str::to_owned))).await?;
    let of_instances = scheduled.iter().filter_map(scheduled_event);
    checks.scheduled.extend(of_instances);
    Ok(checks)
}

async fn statuses(client: &Client, by: Filter) -> Result<Vec<types::InstanceStatus>, Ec2Error> {
    let mut pages = client
        .describe_instance_status()
        .filters(by)
        .into_paginator()
        .page_size(PAGE)
        .send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|e| Ec2Error::of("DescribeInstanceStatus", &e))?;
        found.extend(page.instance_statuses.unwrap_or_default());
    }
    Ok(found)
}

/// The next event of an instance that is not over. AWS shows an event for a week after its end. Its
/// description then begins with `[Completed]` or `[Canceled]` ("Scheduled events for Amazon EC2
/// instances").
pub(crate) fn scheduled_event(status: &types::InstanceStatus) -> Option<(String, ScheduledEvent)> {
    let is_over = |event: &&types::InstanceStatusEvent| {
        let description = event.description().unwrap_or_default();
        ["[Completed]", "[Canceled]"]
            .iter()
            .any(|over| description.starts_with(over))
    };
    let open = status.events().iter().filter(|event| !is_over(event));
    let events = open.filter_map(|event| {
        let not_before = event.not_before();
        Some(ScheduledEvent {
            code: event.code()?.as_str().to_owned(),
            not_before: not_before.and_then(|at| Timestamp::from_second(at.secs()).ok()),
        })
    });
    let next = events.min_by_key(|event| event.not_before)?;
    Some((status.instance_id()?.to_owned(), next))
}

/// The output on the console of an instance. On Nitro, EC2 returns the latest output. On Xen, EC2
/// returns the output up to the last change of the instance's state. Source: "Instance console
/// output" in the Amazon EC2 User Guide.
pub(crate) async fn console(client: &Client, id: &str) -> Result<Vec<u8>, Ec2Error> {
    const OPERATION: &str = "GetConsoleOutput";
    let call = |latest| {
        let call = client.get_console_output().instance_id(id);
        call.set_latest(latest).send()
    };
    let answer = match call(Some(true)).await {
        Err(error) if Ec2Error::of(OPERATION, &error).code == "UnsupportedOperation" => {
            call(None).await
        }
        answer => answer,
    };
    let answer = answer.map_err(|error| Ec2Error::of(OPERATION, &error))?;
    let output = answer.output().unwrap_or_default();
    STANDARD
        .decode(output)
        .map_err(|_| Ec2Error::malformed(OPERATION, "output in base64"))
}

/// The instance, or `None` if it lacks the tags of a pool. It is not the provider's then, whatever
/// else it carries.
pub(crate) fn read(instance: &types::Instance, keys: &TagKeys) -> Option<Instance> {
    let tag = |key| tag_value(instance.tags(), key);
    let tags = instance.tags().iter();
    let tags = tags.filter_map(|tag| Some((tag.key()?, tag.value()?)));
    let market = match instance.instance_lifecycle() {
        Some(InstanceLifecycleType::Spot) => Market::Spot,
        _ => Market::OnDemand,
    };
    Some(Instance {
        id: instance.instance_id()?.to_owned(),
        pool_uid: tag(keys.pool_uid)?.to_owned(),
        launch: tag(keys.launch)?.parse().ok()?,
        generation: tag(keys.generation).map(Into::into),
        lease: tag(keys.lease).map(Into::into),
        lease_digest: tag(keys.lease_digest).map(Into::into),
        authorized_keys: keys.authorized_keys(tags),
        activity: tag(keys.activity).and_then(said),
        host_key: tag(keys.host_key).and_then(said),
        setup: tag(keys.setup).and_then(said),
        offering: Offering {
            instance_type: instance.instance_type()?.as_str().to_owned(),
            zone: instance.placement()?.availability_zone()?.to_owned(),
            market,
        },
        image_id: instance.image_id().unwrap_or_default().to_owned(),
        state: InstanceState::parse(instance.state()?.name()?.as_str())?,
        state_reason: instance.state_reason().and_then(reason),
        state_message: instance
            .state_reason()
            .and_then(|reason| reason.message())
            .map(stable_message),
        public_ip: address(instance.public_ip_address()),
        private_ip: address(instance.private_ip_address()),
        launched_at: instance
            .launch_time()
            .and_then(|t| Timestamp::from_second(t.secs()).ok()),
    })
}

/// The code of a state's reason. EC2 may wrap the true code into the message of
/// `Server.InternalError` ("Instance terminates immediately" in the Amazon EC2 User Guide).
fn reason(reason: &types::StateReason) -> Option<String> {
    let message = reason.message().unwrap_or_default();
    let first = message.split([':', ' ']).next().unwrap_or_default();
    let is_code = first.starts_with("Client.") || first.starts_with("Server.");
    let code = if is_code { Some(first) } else { reason.code() };
    code.filter(|code| !code.is_empty()).map(Into::into)
}

/// The agent's text, if a tag of EC2 can hold it. An empty text says nothing, and a longer one does
/// not come from EC2.
fn said(text: &str) -> Option<String> {
    let is_said = !text.is_empty() && text.chars().count() <= TAG_VALUE_LIMIT;
    is_said.then(|| text.to_owned())
}

fn address(address: Option<&str>) -> Option<String> {
    address.filter(|a| !a.is_empty()).map(Into::into)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use aws_sdk_ec2::types::{InstanceStateName, InstanceType, Placement, Tag};

    pub(crate) const KEYS: TagKeys = TagKeys {
        cluster: "cluster",
        pool_uid: "pool",
        launch: "launch",
        generation: "generation",
        lease: "lease",
        lease_digest: "lease-digest",
        authorized_key: "authorized-key",
        activity: "activity",
        host_key: "host-key",
        setup: "setup",
        home: "home",
        home_copy_of: "home-copy-of",
        home_kept: "home-kept",
    };

    #[test]
    fn an_unknown_id_hides_no_known_instance() {
        let ids: Vec<String> = (0..450).map(|number| format!("i-{number}")).collect();
        let is_unknown = |id: &String| ["i-0", "i-7", "i-449"].contains(&id.as_str());
        let mut calls = NamingCalls::of(&ids);
        let mut found = Vec::new();
        while let Some(part) = calls.next() {
            assert!(part.len() <= FILTER_VALUES);
            if part.iter().any(is_unknown) {
                calls.divide(part);
            } else {
                found.extend(part);
            }
        }
        let mut known: Vec<&String> = ids.iter().filter(|id| !is_unknown(id)).collect();
        known.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, known);
    }

    fn tagged(tags: &[(&str, &str)]) -> types::Instance {
        let tags = tags
            .iter()
            .map(|(k, v)| Tag::builder().key(*k).value(*v).build());
        types::Instance::builder()
            .instance_id("i-1")
            .instance_type(InstanceType::G4dnXlarge)
            .instance_lifecycle(InstanceLifecycleType::Spot)
            .placement(Placement::builder().availability_zone("us-east-1a").build())
            .state(
                types::InstanceState::builder()
                    .name(InstanceStateName::Running)
                    .build(),
            )
            .set_tags(Some(tags.collect()))
            .build()
    }

    #[test]
    fn an_instance_of_a_pool_is_read() {
        let instance = tagged(&[("pool", "uid"), ("launch", "7"), ("generation", "g")]);
        let read = read(&instance, &KEYS).unwrap();
        assert_eq!((read.launch, read.generation.as_deref()), (7, Some("g")));
        assert_eq!(read.offering.market, Market::Spot);
        assert_eq!(read.state, InstanceState::Running);
    }

    #[test]
    fn a_launch_that_ec2_ended_says_its_true_cause() {
        let ended = |code: &str, message: &str| {
            let reason = types::StateReason::builder().code(code).message(message);
            let mut instance = tagged(&[("pool", "uid"), ("launch", "7")]);
            instance.state_reason = Some(reason.build());
            read(&instance, &KEYS).unwrap().state_reason.unwrap()
        };
        let wrapped = "Client.VolumeLimitExceeded: Volume limit exceeded";
        let code = ended("Server.InternalError", wrapped);
        assert_eq!(code, "Client.VolumeLimitExceeded");
        let plain = "Client.InternalError: Client error on launch";
        assert_eq!(ended("Client.InternalError", plain), "Client.InternalError");
        assert_eq!(ended("pending", "pending"), "pending");
    }

    #[test]
    fn an_agents_report_is_passed_on_unchanged_or_not_at_all() {
        let long = "x".repeat(TAG_VALUE_LIMIT);
        let too_long = "x".repeat(TAG_VALUE_LIMIT + 1);
        let pool = [("pool", "uid"), ("launch", "7")];
        for (value, shown) in [
            ("v1 at=2026-11-22T10:00:00Z", true),
            ("not even a report: \u{e9}\u{1f600}", true),
            (&*long, true),
            (&*too_long, false),
            ("", false),
        ] {
            let tags = [pool[0], pool[1], ("activity", value), ("host-key", value)];
            let read = read(&tagged(&tags), &KEYS).unwrap();
            let shown = shown.then(|| value.to_owned());
            assert_eq!((&read.activity, &read.host_key), (&shown, &shown));
        }
        let silent = read(&tagged(&pool), &KEYS).unwrap();
        assert_eq!((silent.activity, silent.host_key), (None, None));
    }

    #[test]
    fn an_instance_that_lacks_a_tag_is_never_touched() {
        for tags in [
            &[("launch", "7")][..],
            &[("pool", "uid")],
            &[("pool", "uid"), ("launch", "x")],
            &[],
        ] {
            assert!(read(&tagged(tags), &KEYS).is_none(), "{tags:?}");
        }
    }
}
