use serde_json::json;

use super::*;

/// Days until the end of the month of [`now`].
const DAYS: f64 = 10.0;

fn now() -> Timestamp {
    "2026-11-21T00:00:00Z".parse().unwrap()
}

/// A stopped workspace, whose homes cost 6 US dollars so far and 0.25 per hour.
fn with_homes(key: &str, month: &str) -> Workspace {
    let home = json!({
        "hourlyUsd": 0.25, "soFarUsd": 6.0, "month": month, "earlierUsd": 0,
        "since": "2026-11-20T00:00:00Z", "billedUntil": "2026-11-21T00:00:00Z",
    });
    workspace(key, &json!({"home": home}))
}

fn workspace(key: &str, change: &Value) -> Workspace {
    let mut cost = json!({
        "hourlyUsd": 0, "soFarUsd": 2.0, "projectedUsd": 2.0, "asOf": "2026-11-01",
        "source": "Catalogue", "month": "2026-11", "earlierUsd": 2.0,
    });
    cost.as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    Workspace {
        key: key.to_owned(),
        uid: key.to_owned(),
        cost: Some(serde_json::from_value(cost).unwrap()),
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
        workspace("dev-dave/asks", &json!({"request": request}))
    };
    let to_come = 0.25 * 24.0 * DAYS;
    let spent = 2.0 + 6.0 + 2.0;
    let monthly = spent + to_come + 20.0;
    let of = |usd: f64| decide(None, monthly, &[asks(usd), homes.clone()], None, now());
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
fn the_homes_of_a_deleted_workspace_stay_in_the_account_of_the_month() {
    let homes = with_homes("dev-dave/deleted", "2026-11");
    let before = decide(None, 100.0, &[homes], None, now());
    let after = decide(Some(&before), 100.0, &[], None, now());
    assert!((after.gone_usd - 8.0).abs() < 1e-9, "{after:?}");
    assert!(after.reserved_usd.abs() < 1e-9, "{after:?}");
}

#[test]
fn homes_cost_the_whole_of_a_new_month_and_nothing_of_the_last_one() {
    let homes = with_homes("dev-dave/stopped", "2026-11");
    let december = "2026-12-01T00:00:00Z".parse().unwrap();
    let account = decide(None, 1_000.0, &[homes], None, december);
    assert!(account.spent_usd.abs() < 1e-9, "{account:?}");
    let whole = 0.25 * 24.0 * 31.0;
    assert!((account.reserved_usd - whole).abs() < 1e-9, "{account:?}");
}
