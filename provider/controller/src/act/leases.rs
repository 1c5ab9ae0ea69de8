//! Tells instances by their tags who may log in, and gives them to leases.

use std::collections::BTreeMap;

use provider_aws::Ec2Error;
use provider_core::{Action, Instance, InstanceState, Observed, Phase, Plan};
use provider_runtime::events::Happened;

use super::{Acted, Actor, Persisted, Promised};

impl<W> Actor<'_, W> {
    /// The plan without the bindings and keys of instances that a fresh describe shows to be
    /// unusable or another owner's. Without the describe it has no binding and no key.
    pub(super) async fn fit(
        &self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Plan {
        let tagged = plan.of(Phase::HandOut).filter_map(|action| match action {
            Action::Bind { instance_id, .. } | Action::Authorize { instance_id, .. } => {
                Some(instance_id.clone())
            }
            _ => None,
        });
        let tagged: Vec<String> = tagged.collect();
        let mut plan = plan.clone();
        if tagged.is_empty() {
            return plan;
        }
        let fresh = match self.look_closely(&tagged, observed).await {
            Ok(fresh) => {
                acted
                    .failures
                    .extend(fresh.unanswered.map(|(_, error)| error));
                fresh.found
            }
            Err(error) => {
                acted.failures.push(error);
                Vec::new()
            }
        };
        observed.instances.retain(|i| self.is_ours(i));
        let bindings = &observed.bindings;
        plan.actions.retain(|action| match action {
            Action::Bind { lease, instance_id } => {
                let had_it = bindings.get(lease) == Some(instance_id);
                let seen = fresh.iter().find(|i| i.id == *instance_id);
                seen.is_some_and(|i| can_have(i, had_it))
            }
            Action::Authorize { instance_id, .. } => {
                let seen = fresh.iter().find(|i| i.id == *instance_id);
                seen.is_some_and(|i| i.state.is_live())
            }
            _ => true,
        });
        plan
    }

    /// Gives instances to leases, and writes the keys that may log in.
    pub(super) async fn hand_out(
        &self,
        plan: &Plan,
        promised: Option<&Persisted<Promised>>,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), kube::Error> {
        for action in plan.of(Phase::HandOut) {
            let done = match action {
                Action::Bind { lease, instance_id } => {
                    let Some(promised) = promised else { continue };
                    let is_new = promised.get().leases.contains(lease);
                    if is_new && !self.is_open(lease).await? {
                        observed.bindings.remove(lease);
                        continue;
                    }
                    self.bind(lease, instance_id, is_new, observed, acted).await
                }
                Action::Authorize { instance_id, tags } => {
                    self.authorize(instance_id, tags, observed).await
                }
                _ => continue,
            };
            acted.note(done);
        }
        Ok(())
    }

    /// Whether the lease of a new binding still exists. The lease is read after the binding was
    /// persisted, and the lease's own reconcile reads the pool's status before it releases the
    /// lease. So one of the two sees the other's change.
    async fn is_open(&self, lease: &str) -> Result<bool, kube::Error> {
        match self.leasing.told.get(lease) {
            Some(told) => self.registry.is_open(&told.lease, lease).await,
            None => Ok(true),
        }
    }

    /// Writes the public keys that may log in to an instance.
    async fn authorize(
        &self,
        instance_id: &str,
        tags: &BTreeMap<String, String>,
        observed: &mut Observed,
    ) -> Result<(), Ec2Error> {
        self.region.ec2.tag(instance_id, tags).await?;
        for instance in &mut observed.instances {
            if instance.id == instance_id {
                instance.authorize(tags);
            }
        }
        Ok(())
    }

    /// Tags an instance with its lease.
    async fn bind(
        &self,
        lease: &str,
        instance_id: &str,
        is_new: bool,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), Ec2Error> {
        let Some(told) = self.leasing.told.get(lease) else {
            return Ok(());
        };
        self.region.ec2.tag(instance_id, &told.tags).await?;
        for instance in &mut observed.instances {
            if instance.id == instance_id {
                instance.lease = Some(lease.to_owned());
                instance.lease_digest = told.tags.get(api::tags::LEASE_DIGEST).cloned();
            }
        }
        if is_new {
            let text = format!("gave {instance_id} to the lease {}", told.lease);
            acted.happened.push(Happened::normal("Leased", text));
        }
        Ok(())
    }
}

/// Whether a lease can have an instance: one that it has already, or a running one that no lease
/// ever had.
fn can_have(instance: &Instance, had_it: bool) -> bool {
    if had_it {
        instance.state.is_live()
    } else {
        instance.state == InstanceState::Running && instance.lease.is_none()
    }
}
