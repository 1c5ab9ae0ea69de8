//! Which compute resource a workspace gets, and how long the ones that do not
//! fit any more stay.
//!
//! The next one is ready before the last one goes, and there are no more than
//! these two: whoever changes a claim five times does not pay for five machines.
//! (More are kept only while nobody can tell which one the owner works on.)

use crate::finding::{Finding, Machine, Outlook};

/// An observed compute resource.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// Its composition resource name.
    pub name: &'a str,
    /// Whether it is as the resolved workspace asks.
    pub fits: bool,
    /// Whether somebody is deleting it.
    pub deleting: bool,
    /// Whether its machine is somebody's.
    pub keep: KeepReason,
    /// What it shows.
    pub finding: Finding,
}

/// What speaks for keeping a machine that does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeepReason {
    /// Nothing.
    None,
    /// It ran, as far as anybody can tell, so its disk may hold work.
    MayHoldWork,
    /// It is the machine of the last call.
    Recorded,
}

impl KeepReason {
    /// What speaks for a machine that is that of the last call, or ran.
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

/// What becomes of the candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The name of the one to have.
    pub target: String,
    /// The names of those that stay until the target serves.
    pub kept: Vec<String>,
    /// The machine that serves until the target does.
    pub serving: Option<Machine>,
}

/// Chooses. `fresh` is the name under which a new one would be made.
pub fn choose(candidates: &[Candidate<'_>], fresh: &str) -> Choice {
    let target = target(candidates, fresh);
    let served = candidates
        .iter()
        .any(|c| c.name == target && c.fits && c.finding.serves_well());
    let others = || candidates.iter().filter(|c| c.name != target);
    if served {
        return Choice {
            target: target.to_owned(),
            kept: Vec::new(),
            serving: None,
        };
    }
    let serving = others()
        .filter(|c| c.finding.machine.is_some())
        .max_by_key(|c| c.keep);
    let kept = others().filter(|c| match serving {
        // Without a record nobody knows which of those that serve is the owner's.
        Some(serving) if serving.keep != KeepReason::Recorded => {
            c.finding.machine.is_some() || c.is_unreadable()
        }
        Some(serving) => c.name == serving.name || c.is_unreadable(),
        None => c.keep != KeepReason::None || c.is_unreadable(),
    });
    Choice {
        target: target.to_owned(),
        kept: kept.map(|c| c.name.to_owned()).collect(),
        serving: serving.and_then(|c| c.finding.machine.clone()),
    }
}

/// Chooses among those that there are, where nothing new is made; none without any.
pub fn choose_existing(candidates: &[Candidate<'_>]) -> Option<Choice> {
    let first = candidates.first()?;
    Some(choose(candidates, first.name))
}

/// One that fits: the one of the last call, or else one that serves, or else the
/// first. A name that is taken by one that does not fit is told to change.
///
/// While one is being deleted nothing is made beside it: the whole workspace may
/// be on its way out, and Crossplane not have heard of that yet.
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
            report: None,
            host_key: None,
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
    fn a_machine_that_is_not_what_is_wanted_takes_nothing_over() {
        let old = recorded(candidate("old", false, true));
        let choice = choose(&[old, candidate("new", false, true)], "new");
        assert_eq!(choice.kept, ["old"]);
        assert_eq!(choice.serving.unwrap().id, "i-old");
    }

    #[test]
    fn changing_ones_mind_five_times_leaves_two_machines() {
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
    fn going_back_to_what_runs_keeps_it() {
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
    fn what_cannot_be_read_is_not_dropped_for_that() {
        let mut odd = candidate("odd", false, false);
        odd.finding.outlook = Outlook::Unreadable;
        let choice = choose(&[recorded(candidate("old", false, true)), odd], "new");
        assert_eq!(choice.kept, ["old", "odd"]);
    }

    #[test]
    fn nothing_is_made_beside_one_that_is_being_deleted() {
        let mut gone = candidate("gone", true, true);
        gone.deleting = true;
        assert_eq!(choose(std::slice::from_ref(&gone), "new").target, "gone");
        gone.fits = false;
        assert_eq!(choose(std::slice::from_ref(&gone), "new").target, "gone");
        let choice = choose(&[gone, candidate("other", true, false)], "new");
        assert_eq!(choice.target, "other");
    }
}
