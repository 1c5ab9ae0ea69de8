//! Judges what a pool wants.

use provider_core::Desired;

use super::Pass;
use super::want::{Unknown, Want};
use crate::validate;

impl Pass<'_> {
    /// What the pool wants, by its spec and the facts that the spec depends on.
    pub(super) async fn judge(&self, unknown: &mut Unknown) -> Want {
        let mut nothing = validate::deleted(self.pool, self.marks());
        nothing.leases.clone_from(&self.leasing.leases);
        nothing.force = self.leasing.force;
        if self.deleted {
            return Want::Nothing(nothing);
        }
        let kept = Desired {
            deleted: false,
            ..nothing
        };
        let spec = &self.pool.spec.for_provider;
        let facts = match validate::facts(self.region, spec, self.now).await {
            Ok(facts) => facts,
            Err(error) => {
                unknown.note(error);
                return Want::Unjudged(Unknown::default(), kept);
            }
        };
        match validate::validate(self.pool, facts, self.marks()) {
            Ok(mut valid) => {
                valid.desired.leases = kept.leases;
                Want::Valid(valid)
            }
            Err(invalid) => Want::Invalid(invalid, kept),
        }
    }
}
