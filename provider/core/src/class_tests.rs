//! Tests of the classes of EC2's errors.

use std::collections::BTreeSet;

use super::*;

/// The codes by class: see the file.
const CODES: &str = include_str!("class_codes.txt");

#[test]
fn every_code_of_awss_page_has_the_class_that_is_meant() {
    let mut seen = BTreeSet::new();
    let mut class = None;
    let lines = CODES.lines().filter(|line| !line.starts_with('#'));
    for word in lines.flat_map(str::split_whitespace) {
        if let Some(heading) = heading(word) {
            class = Some(heading);
            continue;
        }
        assert!(seen.insert(word), "{word} is there twice");
        assert_eq!(Some(ErrorClass::of(word)), class, "{word}");
    }
    assert!(seen.len() > 250, "{} codes are not all of them", seen.len());
}

/// The class under a heading. A code that the provider never reads is Transient, as any unknown one.
fn heading(word: &str) -> Option<ErrorClass> {
    match word {
        "Unread" => Some(ErrorClass::Transient),
        word => ErrorClass::parse(word),
    }
}

#[test]
fn a_type_that_a_zone_does_not_have_on_a_market_is_no_mistake_of_the_spec() {
    let said = "Your requested instance type ((null)) is not supported in your requested \
                Availability Zone (us-east-1c).";
    let refusal = Refusal::of("InvalidFleetConfiguration", said);
    assert_eq!(refusal.class, ErrorClass::Capacity);
    let refusal = Refusal::of(
        "InvalidFleetConfiguration",
        "The launch template is invalid.",
    );
    assert_eq!(refusal.class, ErrorClass::Configuration);
}

#[test]
fn an_image_that_is_not_shared_is_no_lack_of_permissions() {
    let said = "Not authorized for images: [ami-0123456789abcdef0]";
    let class = ErrorClass::of_error("AuthFailure", said);
    assert_eq!(class, ErrorClass::Configuration);
    let said = "AWS was not able to validate the provided access credentials";
    let class = ErrorClass::of_error("AuthFailure", said);
    assert_eq!(class, ErrorClass::Denied);
}
