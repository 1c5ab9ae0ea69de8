//! Homes: one `PersistentVolumeClaim` for each pod. The StatefulSet creates them and never deletes
//! them.
//!
//! Kubernetes deletes a `PersistentVolumeClaim` that Crossplane composes together with its
//! composite. Homes are therefore composed only under the policy `home.onDelete: Delete`, with the
//! names that the StatefulSet expects. A home that is composed once stays composed even if the
//! policy changes: otherwise Crossplane would delete it at once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::keep;
use function_runtime::outcome::Refusal;
use function_runtime::validation::Violation;
use function_workspace::labels::OWNER_LABEL;
use function_workspace::quantity;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::identity;
use crate::names::Names;
use crate::resolved::{OwnerUid, Resolved, ResolvedHome};
use crate::resource_names;
use crate::seen::{Seen, VolumeClaim};

/// The volume claim template for new homes.
pub fn template(names: &Names, owner: &str, home: &ResolvedHome) -> PersistentVolumeClaim {
    let storage = Quantity(format!("{}Gi", home.size_gib));
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            namespace: None,
            annotations: home.annotations(),
            ..identity::metadata(names, "home", owner)
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), storage)].into()),
                limits: None,
            }),
            storage_class_name: home.storage_class.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

/// The homes that are deleted with the claim, by composition resource name. An existing home stays
/// as it is: its class cannot change, its size cannot shrink, and not every class allows growth.
///
/// # Errors
///
/// An object cannot be written as JSON.
pub fn composed(
    resolved: &Resolved,
    seen: Seen<'_>,
    pods: i32,
) -> Result<BTreeMap<String, Value>, Refusal> {
    let observed = seen.observed.iter();
    let mut homes: BTreeMap<String, Value> = observed
        .filter(|(name, _)| resource_names::home_of_pod(name).is_some())
        .map(|(name, claim)| (name.clone(), kept(claim)))
        .collect();
    let Some(home) = resolved.home.as_ref().filter(|_| resolved.deletes_home) else {
        return Ok(homes);
    };
    for ordinal in 0..pods {
        let name = resolved.names.home(ordinal);
        if let Entry::Vacant(entry) = homes.entry(resource_names::pod_home(ordinal)) {
            entry.insert(match seen.home(&name) {
                Some(adopted) => kept(adopted.object()),
                None => Composed::manifest(&claim(resolved, home, &name))?,
            });
        }
    }
    Ok(homes)
}

/// An observed home as it must be desired to stay as it is, with its owner's mark.
pub fn kept(observed: &Json<'_>) -> Value {
    let mut kept = keep::kept(observed);
    if let Some(uid) = VolumeClaim::new(observed).owner_uid() {
        kept["metadata"]["annotations"] = json!({(identity::OWNER_UID): uid});
    }
    kept
}

fn claim(resolved: &Resolved, home: &ResolvedHome, name: &str) -> PersistentVolumeClaim {
    let mut claim = template(&resolved.names, &resolved.owner, home);
    claim.metadata.name = Some(name.to_owned());
    claim.metadata.namespace = Some(resolved.names.namespace.clone());
    claim
}

/// Refuses a claim whose homes hold files of another person, left by an earlier claim with the same
/// name. Refuses also a home whose owner is unknown.
pub fn check(resolved: &Resolved, seen: Seen<'_>) -> Result<(), Refusal> {
    let names = &resolved.names;
    let homes = seen
        .homes()
        .filter(|home| home.workspace() == Some(&names.name));
    let problems = homes.filter_map(|home| {
        let of = format!(
            "PersistentVolumeClaim {} in namespace {}",
            home.name(),
            names.namespace
        );
        let problem = strange(home, &of, &resolved.owner, resolved.dev_user.as_ref())?;
        Some((home.name(), problem))
    });
    let Some((_, problem)) = problems.min() else {
        return Ok(());
    };
    let violation = Violation::new("spec.parameters.owner", problem);
    Err(Refusal::parameters(violation))
}

/// Why a home is not the owner's; none if it is. `of` names the home.
fn strange(
    home: VolumeClaim<'_>,
    of: &str,
    owner: &str,
    user: Option<&OwnerUid>,
) -> Option<String> {
    const NEXT_STEP: &str = "use another name for the claim, or delete that PersistentVolumeClaim";
    let Some(whose) = home.owner() else {
        return Some(format!(
            "{of} has no label {OWNER_LABEL}, so its owner is unknown; use another name for the claim, or \
             ask the platform team for the label"
        ));
    };
    if whose != owner {
        return Some(format!(
            "must be {whose}: {of} holds their files; {NEXT_STEP}"
        ));
    }
    let made_for = home.owner_uid()?;
    match user? {
        OwnerUid(Some(uid)) if uid == made_for => None,
        OwnerUid(_) => Some(format!(
            "{of} holds the files of an earlier {owner}, whose DevUser had the UID {made_for}; \
             {NEXT_STEP}"
        )),
    }
}

/// Messages about homes that are smaller than the claim's size, with the command that enlarges
/// them. The volume claim templates of a StatefulSet cannot change.
pub fn too_small(resolved: &Resolved, home: &ResolvedHome, seen: Seen<'_>) -> Vec<String> {
    let wish = u64::try_from(home.size_gib).unwrap_or_default();
    let mut homes: Vec<_> = seen.homes().collect();
    homes.sort_by_key(|home| home.name());
    let small = homes.into_iter().filter(|home| {
        let size = home.size().and_then(quantity::storage);
        size.is_some_and(|size| size < wish)
    });
    small
        .map(|volume| {
            let (name, namespace) = (volume.name(), &resolved.names.namespace);
            format!(
                "PersistentVolumeClaim {name} has {}, spec.parameters.home asks for \
                 {wish}Gi; it grows by: kubectl -n {namespace} patch pvc {name} -p \
                 '{{\"spec\":{{\"resources\":{{\"requests\":{{\"storage\":\"{wish}Gi\"}}}}}}}}'",
                volume.size().unwrap_or_default()
            )
        })
        .collect()
}
