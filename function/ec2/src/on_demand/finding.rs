//! The observed state of an on-demand instance.

use api::capacity::InstanceCapacityType;
use api::condition::{LAST_ASYNC_OPERATION, SYNCED};
use function_runtime::object::ObservedObject;
use function_workspace::cause::{Cause, Reason};
use provider_core::InstanceState;

use crate::finding::{self, Finding, Machine, Outlook};
use crate::on_demand::OnDemandInstance;
use crate::on_demand::failure::Failure;
use crate::on_demand::observed::Group;
use crate::setup;

/// The state of an `Instance` that does not exist yet. `recorded` is the instance of the last call.
pub fn absent(recorded: Option<&str>) -> Finding {
    Finding::absent(recorded.map_or_else(
        || Cause::new(Reason::Creating, "waiting for the Instance to be created"),
        |id| finding::lost(id, None),
    ))
}

/// The observed state of an instance. `awaited` is the security group that the instance waits for,
/// and `recorded` the instance of the last call.
pub fn finding(
    instance: &OnDemandInstance<'_>,
    awaited: Option<&Group<'_>>,
    recorded: Option<&str>,
) -> Finding {
    let runs = instance.runs();
    // The failure of the instance says no more than that it has no group yet.
    let failure = match awaited {
        Some(group) => failure(group.object()),
        None => failure(instance.object()),
    };
    Finding {
        machine: machine(instance).filter(|_| runs),
        in_order: runs && instance.is_ready(),
        outlook: match &failure {
            _ if runs => Outlook::Runs,
            Some(failure) if failure.needs_person() => Outlook::NeedsPerson,
            _ => Outlook::Waiting,
        },
        cause: cause(instance, awaited, failure.as_ref(), recorded),
    }
}

fn machine(instance: &OnDemandInstance<'_>) -> Option<Machine> {
    let seen = &instance.at_provider;
    let public = finding::address(seen.public_ip.as_deref());
    let private = finding::address(seen.private_ip.as_deref());
    let address = public.or(private.filter(|_| instance.subnet().is_some()))?;
    let id = instance.current_id()?;
    Some(Machine {
        id: id.to_owned(),
        instance_type: instance.instance_type().to_owned(),
        capacity_type: InstanceCapacityType::OnDemand,
        zone: instance.zone().unwrap_or_default().to_owned(),
        public_ip: public.map(str::to_owned),
        private_ip: private.map(str::to_owned),
        address: address.to_owned(),
        // AWS takes back spot instances only, and announces no other loss here.
        is_taken_back: false,
        // provider-aws reads no scheduled events.
        scheduled: None,
        report: instance.report().map(str::to_owned),
        host_keys: finding::host_keys(instance.host_key(), &[]),
        setup: setup::of_instance(instance, id),
    })
}

/// The failed call that provider-aws reports of a managed resource; none if it reports none.
pub fn failure(resource: ObservedObject<'_>) -> Option<Failure> {
    [LAST_ASYNC_OPERATION, SYNCED]
        .into_iter()
        .find_map(|type_| resource.failing(type_))
        .filter(|condition| !condition.message.is_empty())
        .map(|condition| Failure::read(condition.message))
}

/// The most important cause: an error of the provider, then a lost instance, then a pending step.
fn cause(
    instance: &OnDemandInstance<'_>,
    awaited: Option<&Group<'_>>,
    failure: Option<&Failure>,
    recorded: Option<&str>,
) -> Cause {
    if instance.deleting() {
        return Cause::new(
            Reason::Deleting,
            "the Instance is being deleted; another one follows",
        );
    }
    let lost = recorded
        .filter(|_| !instance.runs() && !is_stopped(instance))
        .filter(|recorded| instance.current_id() != Some(recorded) || is_ending(instance))
        .map(|recorded| finding::lost(recorded, None));
    let failing = failure.map(|failure| {
        let type_ = &instance.for_provider.type_;
        match awaited {
            Some(_) => failure.cause("the security group", None),
            None => failure.cause(&format!("on-demand {type_}"), Some(type_)),
        }
    });
    match (failing, lost) {
        (Some(failing), Some(lost)) => Cause::new(
            failing.reason,
            format!("{}: {}", lost.message, failing.message),
        ),
        (Some(cause), None) | (None, Some(cause)) => cause,
        (None, None) => waiting(instance, awaited),
    }
}

fn is_stopped(instance: &OnDemandInstance<'_>) -> bool {
    use InstanceState::{Stopped, Stopping};
    matches!(instance.state(), Some(Stopping | Stopped))
}

fn is_ending(instance: &OnDemandInstance<'_>) -> bool {
    use InstanceState::{ShuttingDown, Terminated};
    matches!(instance.state(), Some(ShuttingDown | Terminated))
}

fn waiting(instance: &OnDemandInstance<'_>, awaited: Option<&Group<'_>>) -> Cause {
    let Some(id) = instance.current_id() else {
        let what = match awaited {
            Some(_) => "create the security group",
            None => "start the instance",
        };
        return Cause::new(Reason::Creating, format!("waiting for EC2 to {what}"));
    };
    let type_ = &instance.for_provider.type_;
    let zone = instance.zone().unwrap_or_default();
    let which = format!("instance {id} ({type_}, {zone})");
    if is_stopped(instance) {
        let message = format!(
            "{which} is stopped: start it in EC2, or terminate it there to get another one"
        );
        return Cause::new(Reason::Stopped, message);
    }
    let message = if !instance.runs() {
        let state = instance.state_word().unwrap_or("unknown");
        format!("waiting for {which}, which is {state}")
    } else if machine(instance).is_some() {
        format!("waiting for provider-aws to report {which} as ready")
    } else {
        format!("waiting for an address of {which}")
    };
    Cause::new(Reason::Creating, message)
}
