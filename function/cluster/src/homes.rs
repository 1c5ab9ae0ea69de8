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
use function_runtime::keep;
use function_runtime::outcome::Refusal;
use function_runtime::validation::Violation;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::identity;
use crate::names::Names;
use crate::quantity;
use crate::resolved::{Resolved, ResolvedHome};
use crate::resource_names;
use crate::seen::Seen;

/// The volume claim template for new homes.
pub fn template(names: &Names, owner: &str, home: &ResolvedHome) -> PersistentVolumeClaim {
    let storage = Quantity(format!("{}Gi", home.size_gib));
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            namespace: None,
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
        .map(|(name, claim)| (name.clone(), keep::kept(claim)))
        .collect();
    let Some(home) = resolved.home.as_ref().filter(|_| resolved.deletes_home) else {
        return Ok(homes);
    };
    for ordinal in 0..pods {
        let pod = resolved.names.pod(ordinal);
        if let Entry::Vacant(entry) = homes.entry(resource_names::pod_home(ordinal)) {
            entry.insert(match seen.home_of(&pod) {
                Some(adopted) => keep::kept(adopted.object()),
                None => Composed::manifest(&claim(resolved, home, &pod))?,
            });
        }
    }
    Ok(homes)
}

fn claim(resolved: &Resolved, home: &ResolvedHome, pod: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: identity::metadata(&resolved.names, &format!("home-{pod}"), &resolved.owner),
        ..template(&resolved.names, &resolved.owner, home)
    }
}

/// Refuses a claim whose homes hold files of another owner, left by an earlier claim with the same
/// name.
pub fn check(resolved: &Resolved, seen: Seen<'_>) -> Result<(), Refusal> {
    let owner = &resolved.owner;
    let strange = seen
        .homes()
        .filter_map(|home| Some((home.name(), home.owner().filter(|whose| whose != owner)?)))
        .min();
    let Some((home, whose)) = strange else {
        return Ok(());
    };
    let problem = format!(
        "must be {whose}: PersistentVolumeClaim {home} in namespace {} holds their files; use \
         another name for the claim, or delete that PersistentVolumeClaim",
        resolved.names.namespace
    );
    let violation = Violation::new("spec.parameters.owner", problem);
    Err(Refusal::parameters(violation))
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
                "PersistentVolumeClaim {name} has {}, spec.parameters.home.sizeGiB asks for \
                 {wish}Gi; it grows by: kubectl -n {namespace} patch pvc {name} -p \
                 '{{\"spec\":{{\"resources\":{{\"requests\":{{\"storage\":\"{wish}Gi\"}}}}}}}}'",
                volume.size().unwrap_or_default()
            )
        })
        .collect()
}
