//! The annotation that stops a workspace.

use super::*;

const REQUESTED: Step = Step::Stop(StopReason::Requested);

/// A workspace that is new at 10:00, and whose owner asks for a stop at 10:30.
fn stopped(has_machine: bool) -> Life {
    let mut life = Life::new(Some("8h"), None);
    life.has_machine = has_machine;
    assert_eq!(life.at("10:00"), Step::Run);
    asked(&mut life, "now");
    assert_eq!(life.at("10:30"), REQUESTED);
    life
}

fn asked(life: &mut Life, value: &str) {
    life.stop = Some(value.to_owned());
}

#[test]
fn a_stop_that_its_owner_asked_for_ends_only_by_a_resume() {
    let mut life = stopped(true);
    life.has_machine = false;
    assert_eq!(life.at("12:00"), REQUESTED);
    // Another value changes nothing: the workspace is stopped already.
    asked(&mut life, "again");
    assert_eq!(life.at("12:10"), REQUESTED);
    life.resume = Some("please".into());
    assert_eq!(life.at("12:20"), Step::Run);
    life.has_machine = true;
    // The values of both annotations are still there.
    assert_eq!(life.at("12:30"), Step::Run);
    asked(&mut life, "once more");
    assert_eq!(life.at("12:40"), REQUESTED);
}

#[test]
fn a_copied_annotation_does_not_stop_a_new_workspace() {
    for limit in [None, Some("8h")] {
        let mut life = Life::new(limit, None);
        life.has_machine = false;
        asked(&mut life, "of another claim");
        assert_eq!(life.at("10:00"), Step::Run);
        life.has_machine = true;
        assert_eq!(life.at("10:10"), Step::Run);
    }
}

#[test]
fn a_workspace_that_waits_for_its_machine_can_be_stopped() {
    stopped(false);
}

#[test]
fn a_requested_stop_lets_the_rest_be_deleted_in_time() {
    let next_day = stopped(true).look("2026-11-21T10:30:00Z");
    assert_eq!(next_day.step, Step::Delete(StopReason::Requested));
}
