use super::*;
use serde_json::json;

/// A request with the given `EnvironmentConfigs` as required resources.
fn answers(configs: &[(&str, Option<Value>)]) -> Request<'static> {
    let answer = |(name, data): &(&str, Option<Value>)| {
        let found = data
            .iter()
            .map(|data| json!({"data": data}).into())
            .collect();
        ((*name).to_owned(), found)
    };
    Request {
        required: configs.iter().map(answer).collect(),
        ..Request::default()
    }
}

fn policy(further: &[&str]) -> WorkspacePolicy {
    with_catalogue(&json!({"name": "gpu-workspaces", "further": further}))
}

fn with_catalogue(catalogue: &Value) -> WorkspacePolicy {
    let input = json!({
        "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
        "kind": "WorkspacePolicy",
        "behaviourVersion": "v2",
        "catalogue": catalogue,
        "allowedInstanceTypes": ["g4dn.*"]
    });
    crate::policy::read(Some(&input)).unwrap()
}

fn message(configs: &[(&str, Option<Value>)]) -> String {
    let request = answers(configs);
    read(&policy(&["prices"]), &request)
        .unwrap_err()
        .to_string()
}

#[test]
fn each_problem_of_the_catalogue_names_the_next_step() {
    assert!(
        message(&[])
            .starts_with("waiting for Crossplane to fetch EnvironmentConfig gpu-workspaces")
    );
    assert!(
        message(&[("catalogue", None)])
            .starts_with("EnvironmentConfig gpu-workspaces does not exist: create it")
    );
    assert!(
        message(&[("catalogue", Some(json!({"image": {}})))]).starts_with(
            "EnvironmentConfig gpu-workspaces is not usable: data.image: is no known field"
        )
    );
    assert!(
        message(&[
            ("catalogue", Some(json!({"owners": {}}))),
            ("catalogue-prices", None)
        ])
        .starts_with("EnvironmentConfig prices does not exist: create it")
    );
}

#[test]
fn a_catalogue_that_somebody_emptied_is_not_used() {
    for data in [json!(null), json!({})] {
        let said = message(&[("catalogue", Some(data))]);
        assert_eq!(
            said,
            "EnvironmentConfig gpu-workspaces is not usable: data: is empty: restore its \
             entries"
        );
    }
}

#[test]
fn two_configs_are_merged_into_one_catalogue() {
    let prices = json!({"prices": {"asOf": "2026-11-01", "hourlyUsd": {}}});
    let images = json!({"images": {"us-east-1": {"default": {"id": "ami-1"}}}});
    let request = answers(&[
        ("catalogue", Some(images)),
        ("catalogue-prices", Some(prices)),
    ]);
    let Known { catalogue, notices } = read(&policy(&["prices"]), &request).unwrap();
    assert!(notices.is_empty());
    assert!(catalogue.prices.is_some());
    assert_eq!(catalogue.images.len(), 1);
}

#[test]
fn an_image_in_two_configs_is_refused_and_both_are_named() {
    let images = json!({"images": {"us-east-1": {}}});
    let request = answers(&[
        ("catalogue", Some(images.clone())),
        ("catalogue-images", Some(images)),
    ]);
    let parts = json!([{"name": "images", "provides": ["images"]}]);
    let policy = with_catalogue(&json!({"name": "gpu-workspaces", "parts": parts}));
    assert_eq!(
        read(&policy, &request).unwrap_err().to_string(),
        "EnvironmentConfig images repeats data.images.us-east-1, which EnvironmentConfig \
         gpu-workspaces has: remove it from one of them"
    );
}

/// A catalogue and a part of another team, which has an entry of every kind. One of them repeats
/// an entry of the catalogue.
fn with_a_greedy_part() -> Request<'static> {
    let first = json!({
        "images": {"us-east-1": {"default": {"id": "ami-1"}}},
        "owners": {"alice": {"publicKeys": ["ssh-ed25519 AAAA alice"]}}
    });
    let part = json!({
        "prices": {"asOf": "2026-11-01"},
        "images": {"us-east-1": {}, "eu-west-1": {"default": {"id": "ami-2"}}},
        "networks": {"us-east-1": {"securityGroupIds": ["sg-open"]}},
        "owners": {"bob": {"publicKeys": ["ssh-ed25519 AAAA mallory"]}}
    });
    answers(&[("catalogue", Some(first)), ("catalogue-prices", Some(part))])
}

#[test]
fn a_team_that_keeps_prices_adds_no_keys_images_or_networks_and_holds_nothing() {
    let Known { catalogue, notices } = read(&policy(&["prices"]), &with_a_greedy_part()).unwrap();
    assert!(catalogue.prices.is_some());
    let owners: Vec<_> = catalogue.owners.keys().collect();
    assert_eq!(owners, ["alice"]);
    let regions: Vec<_> = catalogue.images.keys().collect();
    assert_eq!(regions, ["us-east-1"]);
    assert!(catalogue.networks.is_empty());
    assert_eq!(
        notices,
        [
            "EnvironmentConfig prices has data.images and data.networks and data.owners without \
          effect: the policy lets it provide prices only (input.catalogue.parts)"
        ]
    );
}

#[test]
fn prices_of_a_part_that_may_not_provide_them_do_not_count() {
    let parts = json!([{"name": "prices", "provides": ["owners"]}]);
    let policy = with_catalogue(&json!({"name": "gpu-workspaces", "parts": parts}));
    let request = with_a_greedy_part();
    assert!(prices(&policy, &request).is_none());
    let Known { catalogue, .. } = read(&policy, &request).unwrap();
    assert!(catalogue.prices.is_none());
    assert_eq!(catalogue.owners.len(), 2);
}
