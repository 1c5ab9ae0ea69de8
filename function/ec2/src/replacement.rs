//! Chooses the compute resource of a workspace, and the old compute resources that are kept until
//! their replacement is ready.
//!
//! A replacement is ready before the old resource is dropped. There are never more than these two,
//! so an owner who changes a claim five times does not pay for five machines. More are kept only if
//! the function does not know which machine the owner uses.

use crate::finding::{Finding, Machine, Outlook};

/// An observed compute resource that may be the workspace's.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The composition resource name.
    pub name: &'a str,
    /// Whether the resource matches the resolved workspace.
    pub fits: bool,
    /// Whether the resource is being deleted.
    pub deleting: bool,
    /// Why its machine must be kept.
    pub keep: KeepReason,
    /// The observed state.
    pub finding: Finding,
}

/// Why a machine that does not serve is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeepReason {
    /// There is no reason to keep it.
    None,
    /// The machine may have run, so its disk may hold work.
    MayHoldWork,
    /// It is the machine that the last call recorded.
    Recorded,
}

impl KeepReason {
    /// The reason to keep a machine. `is_recorded`: the last call recorded it. `may_hold_work`: it
    /// may have run.
    pub fn of(is_recorded: bool, may_hold_work: bool) -> Self {
        match (is_recorded, may_hold_work) {
            (true, _) => Self::Recorded,
            (false, true) => Self::MayHoldWork,
            (false, false) => Self::None,
        }
    }
}

impl Candidate<'_> {
    fn is_unreadable(&self) -> bool {
        self.finding.outlook == Outlook::Unreadable
    }
}

/// The result of the choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The composition resource name of the target, which the workspace is to have.
    pub target: String,
    /// The names of the resources that are kept until the target serves.
    pub kept: Vec<String>,
    /// The machine that serves the owner until the target serves; none if the target serves.
    pub serving: Option<Machine>,
}

/// Chooses the target and the kept resources. `fresh` is the name of a new resource.
pub fn choose(candidates: &[Candidate<'_>], fresh: &str) -> Choice {
    let target = target(candidates, fresh);
    let served = candidates
        .iter()
        .any(|c| c.name == target && c.fits && c.finding.serves_well());
    let others = || candidates.iter().filter(|c| c.name != target);
    if served {
        // A machine whose status cannot be read may be the one that the owner uses.
        let kept = others().filter(|c| c.is_unreadable());
        return Choice {
            target: target.to_owned(),
            kept: kept.map(|c| c.name.to_owned()).collect(),
            serving: None,
        };
    }
    // The owner stays on the machine of the last call while it runs.
    let owners = candidates.iter().find(|c| {
        c.name == target && c.keep == KeepReason::Recorded && c.finding.machine.is_some()
    });
    let serving = others()
        .filter(|c| c.finding.machine.is_some() && owners.is_none())
        .max_by_key(|c| c.keep);
    let kept = others().filter(|c| match serving {
        Some(serving) if serving.keep == KeepReason::Recorded => {
            c.name == serving.name || c.is_unreadable()
        }
        // The target does not serve well, or the function does not know which serving machine the
        // owner uses.
        _ if serving.or(owners).is_some() => c.finding.machine.is_some() || c.is_unreadable(),
        _ => c.keep != KeepReason::None || c.is_unreadable(),
    });
    Choice {
        target: target.to_owned(),
        kept: kept.map(|c| c.name.to_owned()).collect(),
        serving: serving.and_then(|c| c.finding.machine.clone()),
    }
}

/// Chooses among the observed resources without a new one; none if there are no candidates.
pub fn choose_existing(candidates: &[Candidate<'_>]) -> Option<Choice> {
    let first = candidates.first()?;
    Some(choose(candidates, first.name))
}

/// The target: the recorded resource if it fits, or else one that serves and fits, or else the
/// first that fits. If none fits, the target is `fresh`. If a resource with that name exists, it is
/// updated.
///
/// While a resource is being deleted, no new one is created beside it: the whole workspace may be
/// deleted, and Crossplane's cache may not show that yet.
fn target<'a>(candidates: &'a [Candidate<'_>], fresh: &'a str) -> &'a str {
    candidates
        .iter()
        .filter(|c| c.fits || c.deleting)
        .max_by_key(|c| {
            (
                c.fits && !c.deleting,
                c.keep == KeepReason::Recorded,
                c.finding.machine.is_some(),
                std::cmp::Reverse(c.name),
            )
        })
        .map_or(fresh, |c| c.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::capacity::InstanceCapacityType;
    use function_workspace::cause::{Cause, Reason};
    use function_workspace::setup::Setup;

    fn candidate(name: &'static str, fits: bool, serves: bool) -> Candidate<'static> {
        let machine = serves.then(|| Machine {
            id: format!("i-{name}"),
            instance_type: "g5.xlarge".into(),
            capacity_type: InstanceCapacityType::OnDemand,
            zone: "us-east-1a".into(),
            public_ip: None,
            private_ip: None,
            address: "198.51.100.1".into(),
            is_taken_back: false,
            scheduled: None,
            report: None,
            host_keys: Vec::new(),
            setup: Setup::Done,
        });
        Candidate {
            name,
            fits,
            deleting: false,
            keep: KeepReason::None,
            finding: Finding {
                in_order: serves,
                outlook: if serves {
                    Outlook::Runs
                } else {
                    Outlook::Waiting
                },
                machine,
                cause: Cause::new(Reason::Creating, ""),
            },
        }
    }

    fn recorded(candidate: Candidate<'static>) -> Candidate<'static> {
        Candidate {
            keep: KeepReason::Recorded,
            ..candidate
        }
    }

    #[test]
    fn a_workspace_that_fits_is_not_replaced() {
        let choice = choose(&[candidate("a", true, false)], "b");
        assert_eq!((choice.target.as_str(), choice.kept.len()), ("a", 0));
    }

    #[test]
    fn the_old_machine_serves_until_the_new_one_does() {
        let old = recorded(candidate("old", false, true));
        let choice = choose(std::slice::from_ref(&old), "new");
        assert_eq!(choice.target, "new");
        assert_eq!(choice.kept, ["old"]);
        assert_eq!(choice.serving.unwrap().id, "i-old");

        let choice = choose(&[old.clone(), candidate("new", true, false)], "new");
        assert_eq!(choice.kept, ["old"]);
        let choice = choose(&[old, candidate("new", true, true)], "new");
        assert_eq!((choice.kept.len(), choice.serving), (0, None));
    }

    #[test]
    fn a_machine_that_does_not_fit_does_not_replace_the_serving_one() {
        let old = recorded(candidate("old", false, true));
        let choice = choose(&[old, candidate("new", false, true)], "new");
        assert_eq!(choice.kept, ["old"]);
        assert_eq!(choice.serving.unwrap().id, "i-old");
    }

    #[test]
    fn five_changes_of_a_claim_leave_two_machines() {
        let choice = choose(
            &[
                recorded(candidate("old", false, true)),
                candidate("second", false, false),
                candidate("third", false, false),
                candidate("fourth", true, false),
            ],
            "fifth",
        );
        assert_eq!(choice.target, "fourth");
        assert_eq!(choice.kept, ["old"]);
    }

    #[test]
    fn changing_back_keeps_the_running_machine() {
        let choice = choose(
            &[
                recorded(candidate("old", true, true)),
                candidate("new", false, false),
            ],
            "fresh",
        );
        assert_eq!((choice.target.as_str(), choice.kept.len()), ("old", 0));
    }

    #[test]
    fn an_interrupted_machine_is_kept_until_there_is_another_one() {
        let choice = choose(&[recorded(candidate("old", false, false))], "new");
        assert_eq!(choice.kept, ["old"]);
        assert_eq!(choice.serving, None);
    }

    #[test]
    fn a_stopped_machine_is_kept_until_there_is_another_one() {
        let mut stopped = candidate("stopped", false, false);
        stopped.keep = KeepReason::MayHoldWork;
        let choice = choose(std::slice::from_ref(&stopped), "new");
        assert_eq!(choice.kept, ["stopped"]);
        let choice = choose(&[stopped, candidate("new", true, true)], "new");
        assert!(choice.kept.is_empty());
    }

    #[test]
    fn an_unreadable_resource_is_kept() {
        let mut odd = candidate("odd", false, false);
        odd.finding.outlook = Outlook::Unreadable;
        let old = recorded(candidate("old", false, true));
        let choice = choose(&[old, odd.clone()], "new");
        assert_eq!(choice.kept, ["old", "odd"]);
        let choice = choose(&[candidate("new", true, true), odd], "new");
        assert_eq!(choice.kept, ["odd"], "the owner may use it");
    }

    #[test]
    fn no_machine_is_created_beside_one_that_is_being_deleted() {
        let mut gone = candidate("gone", true, true);
        gone.deleting = true;
        assert_eq!(choose(std::slice::from_ref(&gone), "new").target, "gone");
        gone.fits = false;
        assert_eq!(choose(std::slice::from_ref(&gone), "new").target, "gone");
        let choice = choose(&[gone, candidate("other", true, false)], "new");
        assert_eq!(choice.target, "other");
    }

    #[test]
    fn the_owner_stays_while_two_machines_are_being_deleted() {
        let deleting = |name| Candidate {
            deleting: true,
            ..candidate(name, false, true)
        };
        let choice = choose(&[recorded(deleting("a")), deleting("b")], "new");
        assert_eq!((choice.target.as_str(), choice.serving), ("a", None));
        assert_eq!(choice.kept, ["b"]);
    }

    #[test]
    fn the_owner_is_not_sent_back_to_the_old_machine() {
        let mut new = recorded(candidate("new", true, true));
        new.finding.in_order = false;
        let choice = choose(&[candidate("old", false, true), new], "fresh");
        assert_eq!((choice.target.as_str(), choice.serving), ("new", None));
    }
}
