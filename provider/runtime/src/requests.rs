//! Asking for a reconcile now.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A change of its value asks for a reconcile. The value is any token, usually
/// the time; once followed it is kept in `status.lastHandledReconcileAt`.
pub const ANNOTATION: &str = "crossplane.io/reconcile-requested-at";
/// The event that tells of it.
pub const EVENT: &str = "ReconcileRequestHandled";

/// The token of a request that was not followed yet.
pub fn pending<'a>(meta: &'a ObjectMeta, last_handled: Option<&str>) -> Option<&'a str> {
    let annotations = meta.annotations.as_ref()?;
    let token = annotations.get(ANNOTATION)?.as_str();
    (!token.is_empty() && last_handled != Some(token)).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_followed_once() {
        let asked = |token: &str| ObjectMeta {
            annotations: Some([(ANNOTATION.into(), token.into())].into()),
            ..ObjectMeta::default()
        };
        assert_eq!(pending(&ObjectMeta::default(), None), None);
        assert_eq!(pending(&asked(""), None), None);
        assert_eq!(pending(&asked("one"), None), Some("one"));
        assert_eq!(pending(&asked("one"), Some("one")), None);
        assert_eq!(pending(&asked("two"), Some("one")), Some("two"));
    }
}
