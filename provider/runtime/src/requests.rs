//! Requests of users for a reconcile now.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The annotation that asks for a reconcile when its value changes. The value is any token, usually
/// the time. Once the request is handled, the token is kept in `status.lastHandledReconcileAt`.
pub const ANNOTATION: &str = "crossplane.io/reconcile-requested-at";
/// The reason of the event that says that a request was handled.
pub const EVENT: &str = "ReconcileRequestHandled";

/// The token of a request that was not handled yet.
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
