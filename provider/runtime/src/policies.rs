//! What a managed resource's `managementPolicies` permit.

use std::collections::BTreeSet;

use api::managed::ManagementAction::{self, All, Create, Delete, LateInitialize, Observe, Update};

/// The sets that crossplane-runtime accepts, beside the empty one, which pauses.
const SUPPORTED: &[&[ManagementAction]] = &[
    &[All],
    &[Observe, Create, Update, Delete, LateInitialize],
    &[Observe],
    &[Observe, LateInitialize],
    &[Observe, Create, Update],
    &[Observe, Create, Update, LateInitialize],
    &[Observe, Create, Update, Delete],
    &[Observe, Update],
    &[Observe, Update, LateInitialize],
    &[Observe, Create],
    &[Observe, Create, LateInitialize],
    &[Observe, Create, Delete],
    &[Observe, Create, Delete, LateInitialize],
    &[Observe, Delete],
    &[Observe, Update, Delete],
    &[Observe, Update, Delete, LateInitialize],
];

/// What may be done to the external resource. It may always be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permitted {
    /// Create what is missing.
    pub create: bool,
    /// Change what exists.
    pub update: bool,
    /// Delete it with the managed resource.
    pub delete: bool,
}

/// A set of policies that no controller supports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "spec.managementPolicies: {0:?} is not a supported combination; use [\"*\"], or a set that \
     contains Observe"
)]
pub struct Unsupported(pub Vec<ManagementAction>);

/// What `policies` permit.
pub fn permitted(policies: &[ManagementAction]) -> Result<Permitted, Unsupported> {
    let set: BTreeSet<_> = policies.iter().copied().collect();
    let supported = SUPPORTED
        .iter()
        .any(|s| set == s.iter().copied().collect::<BTreeSet<_>>());
    if !supported {
        return Err(Unsupported(policies.to_vec()));
    }
    let may = |action| set.contains(&All) || set.contains(&action);
    Ok(Permitted {
        create: may(Create),
        update: may(Update),
        delete: may(Delete),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observed_resource_is_never_changed() {
        let observed = permitted(&[Observe]).unwrap();
        assert_eq!(
            observed,
            Permitted {
                create: false,
                update: false,
                delete: false
            }
        );
    }

    #[test]
    fn a_resource_without_delete_is_orphaned() {
        let orphaned = permitted(&[Update, Create, Observe, LateInitialize]).unwrap();
        assert!(orphaned.create && orphaned.update && !orphaned.delete);
    }

    #[test]
    fn everything_is_everything() {
        let all = permitted(&[All]).unwrap();
        assert!(all.create && all.update && all.delete);
    }

    #[test]
    fn a_combination_that_crossplane_refuses_is_refused() {
        for policies in [&[Create][..], &[Delete], &[All, Observe], &[Create, Update]] {
            assert!(permitted(policies).is_err(), "{policies:?}");
        }
    }
}
