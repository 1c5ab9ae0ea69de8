//! An on-demand instance: what it is made of, and what is seen of it.

use activity_report::{HOST_KEY, REPORT};
use api::capacity::InstanceCapacityType;
use api::condition::{LAST_ASYNC_OPERATION, READY, SYNCED};
use api::policy::WorkspacePolicy;
use function_runtime::object::ObservedObject;
use function_runtime::resource_names::hashed;
use function_workspace::cause::Cause;
use serde_json::{Value, json};

use crate::finding::{self, Finding, Machine, Outlook};
use crate::on_demand::failure::Failure;
use crate::on_demand::{fields, resource};
use crate::resource_names;
use crate::user_data::HOME_UNIT_NAME;
use crate::wanted::Wanted;

/// The kind.
pub const KIND: &str = "Instance";

/// Where an instance has to be, beside its region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The zone of the home volume, where there is one.
    pub zone: Option<&'a str>,
    /// The subnet: the one in which the home volume's first instance was, or the
    /// catalogue's first. The default VPC chooses without one.
    pub subnet: Option<&'a str>,
}

/// The key of a new instance, by all that cannot change without another one, and
/// by the machines that it follows: an object whose instance is lost never gets
/// another one (see [`is_lost`]), so its key is used up. `recorded` is the machine
/// of the last call, `lost` are the others that are lost.
pub fn fresh_key<'a>(
    wanted: &'a Wanted,
    place: Place<'a>,
    recorded: Option<&'a str>,
    lost: impl Iterator<Item = &'a str>,
) -> String {
    let made_of = [
        wanted.instance_type(),
        &wanted.image.id,
        &wanted.user_data,
        place.zone.unwrap_or_default(),
        place.subnet.unwrap_or_default(),
        recorded.unwrap_or_default(),
    ];
    hashed(
        resource_names::INSTANCE_PREFIX,
        made_of.into_iter().chain(lost),
    )
}

/// Whether an instance is what is wanted, so that it stays. User data counts
/// where the policy says so: it is read at the first boot only. An instance that
/// was not told of a home volume at its boot would never mount one.
pub fn fits(
    instance: ObservedObject<'_>,
    wanted: &Wanted,
    policy: &WorkspacePolicy,
    home_zone: Option<&str>,
) -> bool {
    let user_data = instance.for_provider("userData").unwrap_or_default();
    let zone = instance
        .at_provider("availabilityZone")
        .or_else(|| instance.for_provider("availabilityZone"));
    let reaches_home = match (zone, home_zone) {
        (Some(zone), Some(home)) => zone == home,
        _ => true,
    };
    instance.for_provider("instanceType") == Some(wanted.instance_type())
        && (!policy.instance.replace_on_user_data_change || user_data == wanted.user_data)
        && reaches_home
        && (!wanted.has_home || user_data.contains(HOME_UNIT_NAME))
}

/// Whether the object had an instance that is gone from EC2. Late initialization
/// has written its network interface into the spec, so that provider-aws fails to
/// make another one for ever; without late initialization, it would forget the
/// instance at its next start and make a second one.
pub fn is_lost(instance: ObservedObject<'_>) -> bool {
    instance.at_provider("id").is_some() && instance.failing(READY).is_some()
}

/// The desired instance. `observed` is the instance as it is: what EC2 cannot
/// change, or only by a stop, stays as it was made.
pub fn desired(
    wanted: &Wanted,
    policy: &WorkspacePolicy,
    place: Place<'_>,
    own_group: bool,
    observed: Option<ObservedObject<'_>>,
    home_tags: Option<&Value>,
) -> Value {
    let made = |field: &str| observed.and_then(|instance| instance.for_provider(field));
    let (zone, subnet) = match observed {
        Some(instance) => {
            // Another instance in the same object has to reach the same home.
            let home = place
                .zone
                .filter(|zone| instance.at_provider("availabilityZone") == Some(*zone));
            let subnet = made("subnetId");
            let zone = made("availabilityZone").or(home.filter(|_| subnet.is_none()));
            (zone, subnet)
        }
        None => (place.zone.filter(|_| place.subnet.is_none()), place.subnet),
    };
    let groups = &wanted.network.security_group_ids;
    let mut tags = wanted.tags(policy);
    tags.insert(api::tags::NAME.into(), wanted.origin.to_string());
    let for_provider = fields([
        ("region", Some(json!(wanted.region))),
        ("ami", Some(json!(made("ami").unwrap_or(&wanted.image.id)))),
        ("instanceType", Some(json!(wanted.instance_type()))),
        (
            "userData",
            Some(json!(made("userData").unwrap_or(&wanted.user_data))),
        ),
        ("availabilityZone", zone.map(|zone| json!(zone))),
        ("subnetId", subnet.map(|subnet| json!(subnet))),
        (
            "vpcSecurityGroupIdSelector",
            own_group.then(|| json!({"matchControllerRef": true})),
        ),
        ("vpcSecurityGroupIds", (!own_group).then(|| json!(groups))),
        (
            "iamInstanceProfile",
            policy
                .instance
                .iam_instance_profile
                .as_ref()
                .map(|p| json!(p)),
        ),
        // IMDSv2 alone, and not from behind a container's bridge.
        (
            "metadataOptions",
            Some(json!({
                "httpEndpoint": "enabled",
                "httpTokens": "required",
                "httpPutResponseHopLimit": 1,
                "instanceMetadataTags": "disabled",
            })),
        ),
        ("rootBlockDevice", Some(root_volume(policy))),
        ("volumeTags", Some(volume_tags(wanted, policy, home_tags))),
        ("tags", Some(json!(tags))),
    ]);
    let mut object = resource(
        KIND,
        &wanted.origin.namespace,
        &policy.on_demand_provider_config_ref,
        &for_provider,
    );
    if let Some(tags) = agents_tags(policy, observed) {
        object["spec"]["initProvider"] = json!({"tags": tags});
    }
    object
}

/// The tags that the instance's agent writes. provider-aws takes away tags that it does
/// not know, and leaves alone what only `initProvider` names: so an instance begins with
/// them, empty, and keeps to what it began with.
fn agents_tags(policy: &WorkspacePolicy, observed: Option<ObservedObject<'_>>) -> Option<Value> {
    match observed {
        Some(instance) => instance.init_provider("tags").cloned(),
        None => policy
            .lifecycle
            .agent
            .as_ref()
            .map(|_| json!({(REPORT): "", (HOST_KEY): ""})),
    }
}

/// The tags of all volumes that are attached. Without any, provider-aws fails to
/// look at an instance with a further volume, and says nothing of it; with other
/// tags than the home volume's, `Instance` and `EBSVolume` take them away from each
/// other at every look.
fn volume_tags(wanted: &Wanted, policy: &WorkspacePolicy, home: Option<&Value>) -> Value {
    match home {
        Some(tags) => tags.clone(),
        None => json!(wanted.tags(policy)),
    }
}

fn root_volume(policy: &WorkspacePolicy) -> Value {
    Value::Object(fields([
        ("encrypted", Some(json!(true))),
        ("volumeType", Some(json!("gp3"))),
        ("deleteOnTermination", Some(json!(true))),
        (
            "volumeSize",
            policy.instance.root_volume_size_gib.map(|size| json!(size)),
        ),
    ]))
}

/// The id of the instance that the object stands for. While the object is not
/// Ready, `status.atProvider` tells of the instance before.
pub fn id(instance: ObservedObject<'_>) -> Option<&str> {
    let current = instance.failing(READY).is_none();
    current.then(|| instance.at_provider("id"))?
}

/// EC2's state of the instance, as far as it is known.
pub fn state(instance: ObservedObject<'_>) -> Option<&str> {
    id(instance)?;
    instance.at_provider("instanceState")
}

/// Looks at an instance; `None` is one that does not exist yet. `recorded` is
/// the instance of the last call.
pub fn finding(instance: Option<ObservedObject<'_>>, recorded: Option<&str>) -> Finding {
    let Some(instance) = instance else {
        return Finding::absent(recorded.map_or_else(
            || Cause::new("Creating", "waiting for the Instance to be created"),
            |id| finding::lost(id, None),
        ));
    };
    let runs = state(instance) == Some("running");
    let failure = failure(instance);
    Finding {
        machine: machine(instance).filter(|_| runs),
        in_order: runs && instance.is_ready(),
        outlook: match &failure {
            _ if runs => Outlook::Runs,
            Some(failure) if failure.needs_person() => Outlook::NeedsPerson,
            _ => Outlook::Waiting,
        },
        cause: cause(instance, failure.as_ref(), recorded),
    }
}

fn machine(instance: ObservedObject<'_>) -> Option<Machine> {
    let at = |field: &str| instance.at_provider(field).map(str::to_owned);
    let private = at("privateIp").filter(|_| instance.for_provider("subnetId").is_some());
    Some(Machine {
        id: id(instance)?.to_owned(),
        instance_type: at("instanceType")
            .or_else(|| instance.for_provider("instanceType").map(str::to_owned))
            .unwrap_or_default(),
        capacity_type: InstanceCapacityType::OnDemand,
        zone: at("availabilityZone").unwrap_or_default(),
        public_ip: at("publicIp"),
        private_ip: at("privateIp"),
        address: at("publicIp").or(private)?,
        // AWS takes spot instances back, and announces no other loss here.
        is_taken_back: false,
        report: instance
            .at_provider_entry("tagsAll", REPORT)
            .map(str::to_owned),
        host_key: instance
            .at_provider_entry("tagsAll", HOST_KEY)
            .map(str::to_owned),
    })
}

fn failure(instance: ObservedObject<'_>) -> Option<Failure> {
    [LAST_ASYNC_OPERATION, SYNCED]
        .into_iter()
        .find_map(|type_| instance.failing(type_))
        .filter(|condition| !condition.message.is_empty())
        .map(|condition| Failure::read(condition.message))
}

/// The first cause that applies: what the provider cannot do, then what was
/// lost, then what is waited for.
fn cause(instance: ObservedObject<'_>, failure: Option<&Failure>, recorded: Option<&str>) -> Cause {
    if instance.deleting() {
        return Cause::new(
            "Deleting",
            "the Instance is being deleted; another one follows",
        );
    }
    let runs = state(instance) == Some("running");
    let lost = recorded
        .filter(|_| !runs && !is_stopped(instance))
        .filter(|recorded| id(instance) != Some(recorded) || is_ending(instance))
        .map(|recorded| finding::lost(recorded, None));
    let failing = failure.map(|failure| {
        let type_ = instance.for_provider("instanceType").unwrap_or_default();
        failure.cause(&format!("on-demand {type_}"), Some(type_))
    });
    match (failing, lost) {
        (Some(failing), Some(lost)) => Cause::new(
            failing.reason,
            format!("{}: {}", lost.message, failing.message),
        ),
        (Some(cause), None) | (None, Some(cause)) => cause,
        (None, None) => waiting(instance),
    }
}

/// Whether somebody may have worked on it: it is neither new nor at its end.
pub fn may_hold_work(instance: ObservedObject<'_>) -> bool {
    id(instance).is_some()
        && !matches!(
            state(instance),
            Some("pending" | "shutting-down" | "terminated")
        )
}

fn is_stopped(instance: ObservedObject<'_>) -> bool {
    matches!(state(instance), Some("stopping" | "stopped"))
}

fn is_ending(instance: ObservedObject<'_>) -> bool {
    matches!(state(instance), Some("shutting-down" | "terminated"))
}

fn waiting(instance: ObservedObject<'_>) -> Cause {
    let Some(id) = id(instance) else {
        return Cause::new("Creating", "waiting for EC2 to start the instance");
    };
    let type_ = instance.for_provider("instanceType").unwrap_or_default();
    let zone = instance.at_provider("availabilityZone").unwrap_or_default();
    let which = format!("instance {id} ({type_}, {zone})");
    if is_stopped(instance) {
        let message = format!(
            "{which} is stopped: start it in EC2, or terminate it there to get another one"
        );
        return Cause::new("Stopped", message);
    }
    match state(instance) {
        Some("running") if machine(instance).is_some() => Cause::new(
            "Creating",
            format!("waiting for provider-aws to report {which} as ready"),
        ),
        Some("running") => Cause::new("Creating", format!("waiting for an address of {which}")),
        state => Cause::new(
            "Creating",
            format!(
                "waiting for {which}, which is {}",
                state.unwrap_or("unknown")
            ),
        ),
    }
}
