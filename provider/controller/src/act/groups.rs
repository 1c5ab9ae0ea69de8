//! The actions on the pool's own security group.

use std::collections::BTreeSet;

use provider_aws::{Ec2Error, GroupRequest};
use provider_core::{Action, Group, GroupRules, Observed, Phase, Plan, SecurityGroups};
use provider_runtime::events::Happened;

use super::{Acted, Actor};

impl<W> Actor<'_, W> {
    /// Creates the pool's group, or corrects its rules. Returns whether instances can be launched
    /// into it.
    pub(super) async fn prepare_group(
        &self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> bool {
        let mut is_ready = true;
        for action in plan.of(Phase::PrepareGroup) {
            let done = match action {
                Action::CreateGroup { vpc_id, rules } => {
                    self.create_group(vpc_id, rules, observed, acted).await
                }
                Action::SetGroupRules {
                    group_id,
                    authorize,
                    revoke,
                    revoke_ids,
                } => {
                    let change = (authorize, revoke, revoke_ids);
                    self.set_rules(group_id, change, observed).await
                }
                _ => continue,
            };
            is_ready &= done.is_ok();
            acted.note(done);
        }
        is_ready
    }

    /// Adds rules before it takes others away: the networks of both keep their access.
    async fn set_rules(
        &self,
        group_id: &str,
        (authorize, revoke, revoke_ids): (&GroupRules, &GroupRules, &BTreeSet<String>),
        observed: &mut Observed,
    ) -> Result<(), Ec2Error> {
        let authorized = self.region.ec2.authorize(group_id, authorize).await;
        match self.region.ec2.revoke(group_id, revoke, revoke_ids).await {
            // The last list of groups may be older than the end of a rule.
            Err(error) if error.is_rule_gone() => {}
            answer => answer?,
        }
        authorized?;
        self.note_rules(group_id, observed);
        Ok(())
    }

    async fn create_group(
        &self,
        vpc_id: &str,
        rules: &GroupRules,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), Ec2Error> {
        let new = self.region.new_group(self.identity, self.now);
        if let Some(group) = new.filter(|group| group.vpc_id == vpc_id) {
            observed.groups.push(group);
            return Ok(());
        }
        let request = GroupRequest {
            name: format!("gpu-spot-pool-{}", self.identity),
            description: "SpotPool of provider-gpu-spot; its rules are managed".into(),
            vpc_id: vpc_id.to_owned(),
            tags: self.tags.clone(),
        };
        let id = match self.region.ec2.create_group(&request).await {
            // The group's name holds the pool's identity, so the group is from an earlier attempt.
            Err(error) if error.is_duplicate() => {
                return self.adopt_group(&request, error, observed).await;
            }
            answer => answer?,
        };
        acted.happened.push(Happened::normal(
            "CreatedGroup",
            format!("created security group {id} in {vpc_id}"),
        ));
        let mut group = Group {
            id: id.clone(),
            pool_uid: self.identity.to_owned(),
            vpc_id: vpc_id.to_owned(),
            rules: GroupRules::default(),
            foreign_rule_ids: [].into(),
        };
        self.region.created_group(group.clone(), self.now);
        // The group is in the status even if its rules cannot be added. If the pool is deleted
        // before EC2 lists the group, only the status names it.
        observed.groups.push(group.clone());
        self.region.ec2.authorize(&id, rules).await?;
        self.note_rules(&id, observed);
        group.rules = rules.clone();
        self.region.created_group(group, self.now);
        Ok(())
    }

    /// Adopts the existing group as it is. The next plan changes its rules.
    async fn adopt_group(
        &self,
        request: &GroupRequest,
        mut duplicate: Ec2Error,
        observed: &mut Observed,
    ) -> Result<(), Ec2Error> {
        let listed = self.region.ec2.groups().await?;
        let mut ours = listed
            .into_iter()
            .filter(|g| g.pool_uid == self.identity && g.vpc_id == request.vpc_id);
        let Some(group) = ours.next() else {
            duplicate.message = format!(
                "security group {} exists in {} and is not listed with the pool's tags yet; if \
                 that lasts, somebody changed its tags: delete it",
                request.name, request.vpc_id
            );
            return Err(duplicate);
        };
        observed.groups.push(group);
        Ok(())
    }

    fn note_rules(&self, group_id: &str, observed: &mut Observed) {
        let Some(SecurityGroups::Owned { rules, .. }) = self.valid.map(|v| &v.desired.groups)
        else {
            return;
        };
        for group in observed.groups.iter_mut().filter(|g| g.id == group_id) {
            group.rules = rules.clone();
            group.foreign_rule_ids.clear();
        }
    }

    pub(super) async fn delete_group(
        &self,
        group_id: &str,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), Ec2Error> {
        match self.region.ec2.delete_group(group_id).await {
            Err(mut error) if error.is_dependency_violation() => {
                error.message = format!(
                    "something that is not the pool's uses security group {group_id}: look for \
                     the network interfaces in it, and take them out"
                );
                return Err(error);
            }
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        self.region.deleted_group(self.identity);
        observed.groups.retain(|g| g.id != group_id);
        acted.happened.push(Happened::normal(
            "DeletedGroup",
            format!("deleted security group {group_id}"),
        ));
        Ok(())
    }
}
