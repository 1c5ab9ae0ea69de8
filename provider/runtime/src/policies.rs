//! The actions that a managed resource's `managementPolicies` permit.

use std::collections::BTreeSet;

use api::managed::ManagementAction::{self, All, Create, Delete, LateInitialize, Observe, Update};

/// The sets of policies that crossplane-runtime accepts, in addition to the empty one, which
/// pauses.
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

/// The permitted actions on the external resource. Observing it is always permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permitted {
    /// Create the external resource.
    pub create: bool,
    /// Change the external resource.
    pub update: bool,
    /// Delete the external resource together with the managed resource.
    pub delete: bool,
}

/// A set of policies that no controller supports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "spec.managementPolicies: {0:?} is not a supported combination; use [\"*\"], or a set that \
     contains Observe"
)]
pub struct Unsupported(pub Vec<ManagementAction>);

/// The actions that `policies` permit.
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

    /// Every supported set, and whether it creates, updates and deletes.
    const MEANING: [(&[ManagementAction], bool, bool, bool); 16] = [
        (&[All], true, true, true),
        (
            &[Observe, Create, Update, Delete, LateInitialize],
            true,
            true,
            true,
        ),
        (&[Observe], false, false, false),
        (&[Observe, LateInitialize], false, false, false),
        (&[Observe, Create, Update], true, true, false),
        (
            &[Observe, Create, Update, LateInitialize],
            true,
            true,
            false,
        ),
        (&[Observe, Create, Update, Delete], true, true, true),
        (&[Observe, Update], false, true, false),
        (&[Observe, Update, LateInitialize], false, true, false),
        (&[Observe, Create], true, false, false),
        (&[Observe, Create, LateInitialize], true, false, false),
        (&[Observe, Create, Delete], true, false, true),
        (
            &[Observe, Create, Delete, LateInitialize],
            true,
            false,
            true,
        ),
        (&[Observe, Delete], false, false, true),
        (&[Observe, Update, Delete], false, true, true),
        (
            &[Observe, Update, Delete, LateInitialize],
            false,
            true,
            true,
        ),
    ];

    #[test]
    fn a_resource_is_changed_as_far_as_its_policies_say_and_no_further() {
        for (policies, create, update, delete) in MEANING {
            let mut reversed = policies.to_vec();
            reversed.reverse();
            for policies in [policies, &reversed] {
                let expected = Permitted {
                    create,
                    update,
                    delete,
                };
                assert_eq!(permitted(policies), Ok(expected), "{policies:?}");
            }
        }
    }

    #[test]
    fn every_set_that_crossplane_supports_is_supported() {
        assert_eq!(SUPPORTED.len(), MEANING.len());
        let actions = [Observe, Create, Update, Delete, LateInitialize];
        for bits in 1..32_u32 {
            let set = actions
                .iter()
                .enumerate()
                .filter(|(i, _)| bits & (1 << i) != 0);
            let set: Vec<_> = set.map(|(_, action)| *action).collect();
            let meant = |(policies, ..): &(&[ManagementAction], bool, bool, bool)| {
                policies.iter().collect::<BTreeSet<_>>() == set.iter().collect()
            };
            assert_eq!(
                permitted(&set).is_ok(),
                MEANING.iter().any(meant),
                "{set:?}"
            );
        }
    }

    #[test]
    fn a_combination_that_crossplane_refuses_is_refused() {
        for policies in [&[Create][..], &[Delete], &[All, Observe], &[Create, Update]] {
            assert!(permitted(policies).is_err(), "{policies:?}");
        }
    }
}
