use serde_json::{Value, json};

use super::*;

/// Days until the end of the month of [`now`].
const DAYS: f64 = 10.0;

fn now() -> Timestamp {
    at("2026-11-21T00:00:00Z")
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The `DevUser` lists no deleted home. Crossplane has not fetched the homes in the user's namespace.
const NONE_DELETED: Deleted<'_> = Deleted {
    listed: &[],
    namespace: "dev-dave",
    there: None,
};

fn decided(previous: Option<&BudgetStatus>, usd: f64, workspaces: &[Workspace]) -> BudgetStatus {
    decide(previous, usd, workspaces, &NONE_DELETED, None, now())
}

/// A stopped workspace with a home that stays after it. The home costs 0.25 US dollars per hour.
fn with_kept_home(key: &str, uid: &str, home: &str) -> Workspace {
    let mut workspace = with_homes(key, "2026-11");
    uid.clone_into(&mut workspace.uid);
    let cost = workspace.cost.as_mut().and_then(|cost| cost.home.as_mut());
    let cost = cost.unwrap();
    cost.homes = vec![home.to_owned()];
    cost.kept_after_deletion = true;
    workspace
}

/// A stopped workspace, whose homes cost 6 US dollars so far and 0.25 per hour.
fn with_homes(key: &str, month: &str) -> Workspace {
    let home = json!({"hourlyUsd": 0.25, "soFarUsd": 6.0, "month": month});
    let counter = json!({"since": "2026-11-20T00:00:00Z", "billedUntil": "2026-11-21T00:00:00Z"});
    workspace(key, &json!({"home": home}), &json!({"homes": counter}))
}

fn workspace(key: &str, change: &Value, memory: &Value) -> Workspace {
    let mut cost = json!({
        "hourlyUsd": 0, "soFarUsd": 2.0, "projectedUsd": 2.0, "asOf": "2026-11-01",
        "source": "Catalogue", "month": "2026-11",
    });
    cost.as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    Workspace {
        key: key.to_owned(),
        uid: key.to_owned(),
        cost: Some(serde_json::from_value(cost).unwrap()),
        memory: serde_json::from_value(memory.clone()).unwrap(),
    }
}

#[test]
fn the_homes_of_stopped_workspaces_leave_less_for_runs() {
    let homes = with_homes("dev-dave/stopped", "2026-11");
    let asks = |usd: f64| {
        let request = json!({
            "madeAt": "2026-11-20T23:59:00Z", "usd": usd, "hourlyUsd": 1.0,
            "until": "2026-11-22T00:00:00Z",
        });
        workspace(
            "dev-dave/asks",
            &json!({}),
            &json!({"budgetRequest": request}),
        )
    };
    let to_come = 0.25 * 24.0 * DAYS;
    let spent = 2.0 + 6.0 + 2.0;
    let monthly = spent + to_come + 20.0;
    let of = |usd: f64| decided(None, monthly, &[asks(usd), homes.clone()]);
    let fits = of(20.0);
    assert!((fits.spent_usd - spent).abs() < 1e-9, "{fits:?}");
    assert!(
        (fits.reserved_usd - to_come - 20.0).abs() < 1e-9,
        "{fits:?}"
    );
    assert_eq!(fits.offers.len(), 1, "{fits:?}");
    let account = &fits.workspaces["dev-dave/stopped"];
    assert!((account.usd - 8.0).abs() < 1e-9, "{account:?}");
    let exceeds = of(20.01);
    assert!(exceeds.offers.is_empty(), "{exceeds:?}");
}

#[test]
fn homes_that_are_deleted_with_their_workspace_stay_in_the_account_of_the_month() {
    let homes = with_homes("dev-dave/deleted", "2026-11");
    let before = decided(None, 100.0, &[homes]);
    let after = decided(Some(&before), 100.0, &[]);
    assert!((after.gone_usd - 8.0).abs() < 1e-9, "{after:?}");
    assert!(after.reserved_usd.abs() < 1e-9, "{after:?}");
    assert_eq!(after.kept_homes, []);
}

#[test]
fn each_home_that_outlives_its_workspace_leaves_less_of_the_budget() {
    let mut account = None;
    for round in 0..3 {
        let uid = format!("uid-{round}");
        let volume = format!("vol-{round}");
        let workspace = with_kept_home("team/again", &uid, &volume);
        let there = decided(account.as_ref(), 1_000.0, &[workspace]);
        account = Some(decided(Some(&there), 1_000.0, &[]));
    }
    let account = account.unwrap();
    let to_come = 3.0 * 0.25 * 24.0 * DAYS;
    assert!((account.reserved_usd - to_come).abs() < 1e-9, "{account:?}");
    let homes: Vec<_> = account.kept_homes.iter().map(|kept| &kept.homes).collect();
    assert_eq!(homes, [&["vol-0"], &["vol-1"], &["vol-2"]]);
    let december = at("2026-12-02T12:00:00Z");
    let next = decide(Some(&account), 1_000.0, &[], &NONE_DELETED, None, december);
    let day = 3.0 * 0.25 * 24.0;
    assert!((next.spent_usd - day).abs() < 1e-9, "{next:?}");
    assert!((next.reserved_usd - 30.0 * day).abs() < 1e-9, "{next:?}");
    assert_eq!(next.kept_homes, account.kept_homes);
}

#[test]
fn a_kept_home_costs_until_it_is_deleted() {
    let pod = with_kept_home("team/pod", "1", "dev-dave/home-pod-0");
    let machine = with_kept_home("team/machine", "2", "vol-1");
    let there = decided(None, 1_000.0, &[pod, machine]);
    let kept = decided(Some(&there), 1_000.0, &[]);
    assert_eq!(kept.kept_homes.len(), 2);
    let later = at("2026-11-21T10:00:00Z");
    let after = |listed: &[String], there: Option<&[String]>| {
        let deleted = Deleted {
            listed,
            there,
            ..NONE_DELETED
        };
        let after = decide(Some(&kept), 1_000.0, &[], &deleted, None, later);
        let homes = after.kept_homes.iter().flat_map(|kept| kept.homes.clone());
        (homes.collect::<Vec<_>>(), after.gone_usd - kept.gone_usd)
    };
    let ten_hours = 2.5;
    let in_namespace = ["home-pod-0".to_owned()];
    let (homes, ended) = after(&[], Some(&in_namespace));
    assert_eq!(homes, ["dev-dave/home-pod-0", "vol-1"]);
    assert!(ended.abs() < 1e-9);
    let (homes, ended) = after(&[], Some(&[]));
    assert_eq!(homes, ["vol-1"]);
    assert!((ended - ten_hours).abs() < 1e-9, "{ended}");
    let (homes, ended) = after(&["vol-1".to_owned()], None);
    assert_eq!(homes, ["dev-dave/home-pod-0"]);
    assert!((ended - ten_hours).abs() < 1e-9, "{ended}");
}

#[test]
fn a_kept_home_that_a_new_workspace_has_counts_once() {
    let home = "dev-dave/home-pod-0";
    let there = decided(None, 1_000.0, &[with_kept_home("team/pod", "1", home)]);
    let kept = decided(Some(&there), 1_000.0, &[]);
    let again = with_kept_home("team/pod", "2", home);
    let after = decided(Some(&kept), 1_000.0, &[again]);
    assert_eq!(after.kept_homes, []);
    let to_come = 0.25 * 24.0 * DAYS;
    assert!((after.reserved_usd - to_come).abs() < 1e-9, "{after:?}");
}

#[test]
fn homes_cost_the_whole_of_a_new_month_and_nothing_of_the_last_one() {
    let homes = with_homes("dev-dave/stopped", "2026-11");
    let december = "2026-12-01T00:00:00Z".parse().unwrap();
    let account = decide(None, 1_000.0, &[homes], &NONE_DELETED, None, december);
    assert!(account.spent_usd.abs() < 1e-9, "{account:?}");
    let whole = 0.25 * 24.0 * 31.0;
    assert!((account.reserved_usd - whole).abs() < 1e-9, "{account:?}");
}
