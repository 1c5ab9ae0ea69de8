//! Compares the response of every case with the stored response.
//!
//! After a change that is meant to change responses, write them anew and read the difference:
//!
//! ```text
//! UPDATE_GOLDENS=1 cargo test -p function-gpu-workspace --test goldens
//! git diff function/tests/cases
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::fs;

use case::answer;

#[test]
fn every_case_gets_the_response_that_is_written_down() {
    let update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let mut differences = Vec::new();
    for name in case::names() {
        let path = case::folder().join(&name).join("response.yaml");
        let response = case::golden(&answer(&case::request(&name)));
        let text = serde_yaml::to_string(&response).unwrap();
        if update {
            fs::write(&path, text).unwrap();
            continue;
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        if let Some(line) = first_difference(&golden, &text) {
            differences.push(format!("{name}/response.yaml:{line}"));
        }
    }
    assert!(
        differences.is_empty(),
        "responses differ from tests/cases; UPDATE_GOLDENS=1 writes them anew\n{}",
        differences.join("\n")
    );
}

/// The first line that differs, with its number.
fn first_difference(golden: &str, text: &str) -> Option<String> {
    if golden == text {
        return None;
    }
    let mut golden = golden.lines();
    let mut text = text.lines();
    for number in 1.. {
        let pair = (golden.next(), text.next());
        if let (Some(a), Some(b)) = pair
            && a == b
        {
            continue;
        }
        let (written, got) = (pair.0.unwrap_or("(end)"), pair.1.unwrap_or("(end)"));
        return Some(format!("{number}\n  written: {written}\n  got:     {got}"));
    }
    None
}
