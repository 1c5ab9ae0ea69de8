//! What the status tells about an extension.

use super::{Life, time};

/// The asked end, the granted one and the message, after an hour's run of which the policy may add
/// two. `extend` is the annotation.
fn told(extend: &str) -> Option<(String, Option<String>, Option<String>)> {
    let mut life = Life::new(Some("1h"), None);
    life.look("2026-11-20T10:00:00Z");
    life.extend = Some(extend.into());
    let decision = life.look("2026-11-20T10:10:00Z");
    let extension = decision.status?.extension?;
    let text = |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| time.0.to_string();
    Some((
        text(&extension.asked_until),
        extension.granted_until.as_ref().map(text),
        extension.message,
    ))
}

#[test]
fn an_extension_within_the_policy_is_granted_as_asked() {
    let end = "2026-11-20T12:30:00Z".to_owned();
    assert_eq!(told(&end), Some((end.clone(), Some(end), None)));
}

#[test]
fn an_extension_beyond_the_policy_is_granted_in_part_and_says_why() {
    let (asked, granted, message) = told("2026-11-21T00:00:00Z").unwrap();
    assert_eq!(asked, "2026-11-21T00:00:00Z");
    assert_eq!(granted, Some(time("2026-11-20T13:00:00Z").to_string()));
    assert!(message.unwrap().contains("lifecycle.maxExtension"));
}

#[test]
fn an_extension_to_an_earlier_end_has_no_effect_and_says_so() {
    let (_, granted, message) = told("2026-11-20T10:30:00Z").unwrap();
    assert_eq!(granted, None);
    assert!(message.unwrap().contains("no effect"));
    assert_eq!(told("tomorrow"), None, "ConfigResolved says so");
}
