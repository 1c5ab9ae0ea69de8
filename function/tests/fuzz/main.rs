//! Random requests, and the rules that every answer must keep.
//!
//! A request is a golden case with random changes: to its claim, to its policy, to the reports of
//! providers and to the resources that Crossplane fetched. Some changes put a random value
//! anywhere. The rules are in [`oracle`]. The reasons for which a resource may be deleted are in
//! [`intent`]. It reads requests through [`view`], which does not use the function's own code.
//!
//! Seeds count up from `FUZZ_SEED`. Their number is `FUZZ_COUNT`, or else `COUNT`, or `ALL` with
//! `THOROUGH`. Every twelfth request, or every `FUZZ_THOROUGH`th, is also checked by the rules that
//! need several calls. A request that breaks a rule is minimised and written to a file.
//! `FUZZ_REQUEST` checks such a file. With `FUZZ_ALL`, the run continues after the first broken
//! rule. With `FUZZ_TRACE`, the run prints each seed before its turn, which shows the seed that
//! ends the process. `make fuzz` runs a million requests in an optimised build, with different
//! seeds each time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../case/mod.rs"]
mod case;
#[path = "../dice/mod.rs"]
mod dice;

mod campaign;
mod compare;
mod conditions;
mod connection;
mod corpus;
mod fleeting;
mod hostile;
mod intent;
mod limits;
mod minimise;
mod mutation;
mod oracle;
mod readiness;
mod size;
mod states;
mod steadiness;
mod view;
mod volume;
mod wishes;

use campaign::{Campaign, Tally};
use corpus::Corpus;
use oracle::Kind;
use serde_json::Value;

/// This number of requests finds every defect of `cargo xtask planted`.
const COUNT: u64 = 2_000;
const ALL: u64 = 4_000;
/// One request in this many is also checked by the rules that need several calls.
const STRIDE: u64 = 12;

#[test]
fn no_request_makes_the_function_panic_delete_or_contradict_itself() {
    oracle::keep_caught_panics_quiet();
    if let Some(path) = std::env::var_os("FUZZ_REQUEST") {
        let text = std::fs::read_to_string(path).unwrap();
        let request: Value = serde_json::from_str(&text).unwrap();
        let checked = oracle::check(&request, true);
        println!("{checked:?}");
        assert!(checked.is_ok(), "{checked:?}");
        return;
    }
    let number = |key| std::env::var(key).ok().and_then(|text| text.parse().ok());
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let usual = if is_thorough { ALL } else { COUNT };
    let campaign = Campaign {
        first: number("FUZZ_SEED").unwrap_or(1),
        count: number("FUZZ_COUNT").unwrap_or(usual),
        finds_all: std::env::var_os("FUZZ_ALL").is_some(),
        thorough_every: number("FUZZ_THOROUGH").unwrap_or(STRIDE),
        is_traced: std::env::var_os("FUZZ_TRACE").is_some(),
    };
    let corpus = Corpus::load();
    let cases = corpus.requests.iter().chain(&corpus.refused);
    assert_eq!(
        cases.filter(|case| fleeting::is_out_of_place(case)).count(),
        0
    );
    let (tally, found) = campaign.run(&corpus);
    let found: Vec<String> = found
        .values()
        .take(20)
        .map(|(seed, violation, times)| {
            let described = campaign::describe(*seed, violation, &corpus);
            format!("{times} times {described}")
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(tally.values().sum::<u64>(), campaign.count);
    if campaign.count >= COUNT {
        assert_all_kinds(&tally, campaign.count);
    }
}

/// If the function refused all requests, the fuzzer would find nothing.
fn assert_all_kinds(tally: &Tally, count: u64) {
    let share = |kind| tally.get(&kind).copied().unwrap_or_default() * 100 / count;
    for (kind, least) in [(Kind::Refused, 1), (Kind::Held, 15), (Kind::Resolved, 15)] {
        assert!(share(kind) >= least, "{kind:?}: {tally:?}");
    }
    assert!(share(Kind::Dropping) >= 2, "{tally:?}");
    assert!(share(Kind::Unsendable) <= 10, "{tally:?}");
}
