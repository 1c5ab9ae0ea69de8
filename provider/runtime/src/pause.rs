//! Pausing a managed resource.

use api::managed::ManagementAction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// With the value `"true"` no controller may change the resource.
pub const ANNOTATION: &str = "crossplane.io/paused";

/// Whether the resource is paused: by its annotation, or because its policies permit no action.
pub fn is_paused(meta: &ObjectMeta, policies: &[ManagementAction]) -> bool {
    let annotations = meta.annotations.as_ref();
    let annotated = annotations.and_then(|a| a.get(ANNOTATION));
    annotated.is_some_and(|value| value == "true") || policies.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_an_annotation_or_an_empty_list_of_policies() {
        let mut meta = ObjectMeta::default();
        assert!(!is_paused(&meta, &[ManagementAction::All]));
        assert!(is_paused(&meta, &[]));
        meta.annotations = Some([(ANNOTATION.to_owned(), "true".to_owned())].into());
        assert!(is_paused(&meta, &[ManagementAction::All]));
    }
}
