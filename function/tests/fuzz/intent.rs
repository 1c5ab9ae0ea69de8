//! Decides strictly which observed resources may be missing from a response. The decision uses only
//! the request and the other parts of the response.
//!
//! Crossplane deletes a resource that is observed and not desired. So every missing resource needs
//! an intent: a statement by the claim, the policy or EC2.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::case::RECORD;
use crate::case::own_names::is_own;
use crate::connection;
use crate::view::{Machine, View, is_compute, is_hashed, text};

/// Resources that the function composes for namespaced composites only. Beside a claim, another step
/// of the pipeline may use their names.
const OF_NAMESPACED: [&str; 2] = [connection::KEY, RECORD];

/// A response that Crossplane applies, with its request.
pub struct Applied<'a> {
    /// The request.
    pub view: &'a View,
    /// The keys that earlier steps of the pipeline desire.
    pub earlier: &'a BTreeSet<String>,
    /// The keys of earlier steps whose resources the function passed on as they were.
    pub passed_on: &'a BTreeSet<String>,
    /// The resources that the response desires, by composition resource name.
    pub desired: &'a BTreeMap<String, Value>,
    /// Whether `ConfigResolved` is True.
    pub is_resolved: bool,
    /// The status that the response desires.
    pub status: &'a Value,
}

impl Applied<'_> {
    /// Whether two observed machines claim the same EC2 id. EC2 never reports that.
    fn is_confused(machines: &BTreeMap<&str, Machine>) -> bool {
        let mut ids: Vec<&String> = machines.values().flat_map(|m| &m.ids).collect();
        let all = ids.len();
        ids.sort();
        ids.dedup();
        ids.len() < all
    }

    /// The first observed resource that the response drops without an intent, or the first SSH rule
    /// that it keeps against the policy.
    pub fn violation(&self) -> Option<(&'static str, String)> {
        let mut own = self
            .desired
            .keys()
            .filter(|key| !self.earlier.contains(*key));
        if self.is_resolved
            && let Some(open) = own.find(|key| self.is_closed(key))
        {
            let what = format!("{open} admits others than the bastion");
            return Some(("only the bastion connects", what));
        }
        let machines = self.view.machines();
        let missing: BTreeSet<&str> = self
            .view
            .observed
            .keys()
            .map(String::as_str)
            .filter(|key| is_own(key) && !self.desired.contains_key(*key))
            .filter(|key| !OF_NAMESPACED.contains(key) || self.view.is_namespaced())
            .filter(|key| !self.is_closed(key))
            .collect();
        let first = missing.first()?;
        // The function can stop a workspace without any required resource.
        let unresolved = self.view.unresolved().filter(|_| !self.is_at_rest());
        if let Some(unresolved) = unresolved {
            let what = format!("{first} is dropped although {unresolved} is unresolved");
            return Some(("held", what));
        }
        // A stopped workspace orders no deletions, whether or not its claim is refused.
        let is_order = |key: &str| key.starts_with("usage-") || is_hashed(key, "power-");
        let is_needed = |key: &&&str| !(self.is_at_rest() && is_order(key));
        let was_deleted = text(
            self.view.status().unwrap_or(&Value::Null),
            "/lifecycle/deletedAt",
        )
        .is_some();
        if !self.is_resolved
            && !was_deleted
            && let Some(needed) = missing.iter().find(is_needed)
        {
            let what = format!("{needed} is dropped although ConfigResolved is not True");
            return Some(("held", what));
        }
        let is_confused = Self::is_confused(&machines);
        let is_plain = |key: &str| !is_confused || !is_about_machines(key);
        let unlawful = |key: &&&str| is_plain(key) && !self.is_intended(key, &machines);
        let dropped = missing.iter().find(unlawful)?;
        let what = format!("{dropped} is dropped; {:?}", machines.get(dropped));
        Some((rule(dropped), what))
    }

    /// Whether the response says that the workspace is stopped.
    fn is_at_rest(&self) -> bool {
        text(self.status, "/lifecycle/stoppedBecause").is_some()
    }

    /// Whether the workspace has been stopped for so long that the function drops its remaining
    /// resources.
    fn is_over(&self) -> bool {
        self.is_at_rest() && text(self.status, "/lifecycle/deletedAt").is_some()
    }

    fn is_intended(&self, key: &str, machines: &BTreeMap<&str, Machine>) -> bool {
        // The deletion of this resource deletes nothing in EC2.
        if is_hashed(key, "power-") {
            return true;
        }
        if self.is_over() && (is_about_machines(key) || key == "home") {
            return key != "home" || self.view.lets_homes_go();
        }
        if let Some(machine) = machines.get(key) {
            return self.is_replaced(key, machine, machines) && !self.is_held_by_home(key, machine);
        }
        if is_hashed(key, "home-attachment-") {
            return self.is_left(key, machines);
        }
        // EC2 deletes the rules of a group with the group.
        let has_group = self.view.observed.contains_key("security-group");
        if !has_group && (key == "egress" || key.starts_with("ssh-")) {
            return true;
        }
        if key.starts_with("ssh-") {
            return self.view.is_of_provider_aws() && !self.is_allowed(key);
        }
        if let Some((of, by)) = key
            .strip_prefix("usage-")
            .and_then(|k| k.split_once("-by-"))
        {
            return self.is_unused(of, by);
        }
        false
    }

    /// The machines other than this one that the response keeps.
    fn others<'b>(
        &'b self,
        key: &'b str,
        machines: &'b BTreeMap<&str, Machine>,
    ) -> impl Iterator<Item = &'b Machine> {
        machines
            .iter()
            .filter(move |(other, _)| **other != key && self.desired.contains_key(**other))
            .map(|(_, machine)| machine)
    }

    fn fits(&self, key: &str, machine: &Machine) -> bool {
        let user_data = |resource: Option<&Value>| {
            let resource = resource?;
            text(resource, "/spec/forProvider/userData").map(str::to_owned)
        };
        let observed = user_data(self.view.observed.get(key));
        // A new instance has the current user data. Existing instances keep theirs. The
        // instance of another step of the pipeline says nothing about it.
        let wanted = |(of, resource): (&String, &Value)| {
            let is_new = is_hashed(of, "instance-") && !self.view.observed.contains_key(of);
            is_new && !self.passed_on.contains(of) && user_data(Some(resource)) != observed
        };
        let is_outdated = self.view.user_data_counts() && self.desired.iter().any(wanted);
        machine.fits && !is_outdated && !self.is_of_another_image(key)
    }

    /// Whether a machine has another image than the one that the claim or its flavor names. An
    /// image that only the policy names applies to the next machine.
    fn is_of_another_image(&self, key: &str) -> bool {
        let observed = self.view.observed.get(key);
        let paths = ["/spec/forProvider/ami", "/spec/forProvider/image/id"];
        let image = paths.iter().find_map(|path| text(observed?, path));
        self.view.names_image() && image != text(self.status, "/image/id")
    }

    /// The id of the machine of the last call, or else of the machine to which the home is
    /// attached. The owner works on that machine.
    fn owners(&self, machines: &BTreeMap<&str, Machine>) -> Option<&str> {
        let is_there = |id: &&str| {
            let mut instances = machines
                .iter()
                .filter(|(key, _)| is_hashed(key, "instance-"));
            instances.any(|(_, m)| m.ids.iter().any(|i| i == id))
        };
        let attached = || self.view.attached_to().into_iter().find(is_there);
        self.view.recorded().or_else(attached)
    }

    fn is_replaced(&self, key: &str, machine: &Machine, all: &BTreeMap<&str, Machine>) -> bool {
        let serves_well = |(other, machine): (&&str, &Machine)| {
            *other != key
                && self.desired.contains_key(*other)
                && machine.serves
                && machine.in_order
                && self.fits(other, machine)
        };
        if all.iter().any(serves_well) {
            return true;
        }
        let another_serves = self.others(key, all).any(|other| other.serves);
        let recorded = self.owners(all);
        if machine.serves && !self.is_stopped_by_us(machine) {
            // A third machine would only cost money. This machine may go if the owner knows the
            // address of another machine.
            let is_known = recorded.is_none_or(|id| machine.ids.iter().any(|i| i == id));
            return another_serves && !is_known && !self.fits(key, machine);
        }
        // Even a machine that fits is unwanted if the response desires another one.
        let a_target = |(other, _): (&String, &Value)| is_compute(other) && other != key;
        let is_unwanted =
            !self.fits(key, machine) || machine.is_deleting || self.desired.iter().any(a_target);
        let is_recorded = recorded.is_some_and(|id| machine.ids.iter().any(|i| i == id));
        let never_served = !machine.stopped && !is_recorded;
        is_unwanted && !machine.unreadable && (another_serves || never_served)
    }

    /// Whether the function asked EC2 to stop the instance.
    fn is_stopped_by_us(&self, machine: &Machine) -> bool {
        let mut ids = machine.ids.iter();
        ids.any(|id| {
            let name = function_ec2::attachment_name(id).replace("home-attachment-", "power-");
            self.view.observed.contains_key(&name)
        })
    }

    /// EC2 detaches the disks by force when it terminates an instance. So the home must be detached
    /// first.
    fn is_held_by_home(&self, key: &str, machine: &Machine) -> bool {
        let attached = self.view.attached_to();
        is_hashed(key, "instance-")
            && self.view.has_home()
            && machine.ids.iter().any(|id| {
                attached.contains(&id.as_str()) || !self.view.required.contains_key("attachments")
            })
    }

    /// Whether an attachment may go, because its instance does not have to hold the home any more.
    fn is_left(&self, key: &str, machines: &BTreeMap<&str, Machine>) -> bool {
        if !self.view.has_home() {
            return true;
        }
        let id = |key: &str, of: &BTreeMap<String, Value>| {
            let id = text(of.get(key)?, "/spec/forProvider/instanceId")?;
            Some(id.to_owned())
        };
        let Some(attached) = id(key, &self.view.observed) else {
            return true;
        };
        // The function never composed an attachment under the name of another instance's
        // attachment.
        if function_ec2::attachment_name(&attached) != key {
            return true;
        }
        let mut its_own = machines
            .iter()
            .filter(|(other, m)| is_hashed(other, "instance-") && m.ids.contains(&attached));
        let is_gone = its_own.clone().next().is_none();
        // The function asked EC2 to stop it. provider-aws also stops an instance before it detaches.
        let is_stopping = key
            .strip_prefix("home-attachment-")
            .is_some_and(|hash| self.view.observed.contains_key(&format!("power-{hash}")));
        let runs = its_own.any(|(_, m)| m.serves) && !is_stopping;
        // The home moves to a machine that serves. The owner has moved to that machine already, or
        // the machine is in order and fits.
        let hands_over = machines.iter().any(|(other, m)| {
            let is_owners = m
                .ids
                .iter()
                .any(|id| Some(id.as_str()) == self.view.recorded());
            !m.ids.contains(&attached)
                && self.desired.contains_key(*other)
                && m.serves
                && (is_owners || (m.in_order && self.fits(other, m)))
        });
        let another = self
            .desired
            .keys()
            .filter(|other| is_hashed(other, "home-attachment-") && *other != key)
            .any(|other| id(other, self.desired).is_some_and(|id| id != attached));
        is_gone || hands_over || another || !runs
    }

    fn is_allowed(&self, key: &str) -> bool {
        is_rule_of(key, &self.view.networks()) || is_rule_of(key, &self.view.bastion())
    }

    /// Whether the policy's `bastion.only` closes an SSH rule. The function removes such a rule also
    /// while it cannot resolve the claim.
    fn is_closed(&self, key: &str) -> bool {
        let is_of_bastion_only = self.view.is_of_bastion_only();
        key.starts_with("ssh-") && is_of_bastion_only && !is_rule_of(key, &self.view.bastion())
    }

    /// Whether a Usage no longer orders any deletion.
    fn is_unused(&self, of: &str, by: &str) -> bool {
        let observed = &self.view.observed;
        let (Some(used), Some(consumer)) = (observed.get(of), observed.get(by)) else {
            return true;
        };
        let is_ours = match (of, by) {
            ("security-group", by) => is_hashed(by, "instance-"),
            ("home", by) => is_hashed(by, "home-attachment-"),
            (of, by) => is_hashed(of, "instance-") && is_hashed(by, "home-attachment-"),
        };
        let other_instance = is_hashed(of, "instance-")
            && text(used, "/status/atProvider/id")
                != text(consumer, "/spec/forProvider/instanceId");
        let no_instance = text(consumer, "/spec/forProvider/instanceId").is_none();
        !is_ours || (is_hashed(of, "instance-") && (other_instance || no_instance))
    }
}

/// Whether the key is that of the SSH rule for one of these networks and security groups.
fn is_rule_of(key: &str, sources: &[String]) -> bool {
    let keys = sources.iter();
    let mut keys = keys.map(|source| format!("ssh-{}", source.replace(['.', '/'], "-")));
    keys.any(|of_source| of_source == key)
}

fn is_about_machines(key: &str) -> bool {
    is_compute(key) || is_hashed(key, "home-attachment-") || key.starts_with("usage-")
}

fn rule(key: &str) -> &'static str {
    match key {
        _ if is_compute(key) => "a machine goes for a reason",
        _ if is_hashed(key, "home-attachment-") => "an attachment goes for a reason",
        _ if key.starts_with("ssh-") => "an SSH rule goes for a reason",
        _ if key.starts_with("usage-") => "a deletion order goes for a reason",
        _ => "home, group and egress stay",
    }
}
