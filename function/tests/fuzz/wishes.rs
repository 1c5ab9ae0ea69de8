//! Changes that developers, the platform team and operations make.

use serde_json::{Value, json};

use crate::case;
use crate::corpus::{Corpus, memory, object};
use crate::dice::Dice;
use crate::hostile;

const PARAMETERS: &[&str] = &["observed", "composite", "resource", "spec", "parameters"];
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEfakefakefakefakefakefakefakefakefakefakefake";

/// Changes the claim's parameters: takes those of another case, or sets one field to a good value
/// or to nonsense.
pub fn parameters(request: &mut Value, dice: &mut Dice, corpus: &Corpus) {
    if dice.percent(10) {
        let parameters = dice.pick(&corpus.parameters).clone();
        object(request, &["observed", "composite", "resource", "spec"])
            .insert("parameters".to_owned(), parameters);
        return;
    }
    let parameters = object(request, PARAMETERS);
    let field = *dice.pick(&[
        "instanceType",
        "instanceType",
        "instanceTypes",
        "flavor",
        "gpu",
        "image",
        "capacityType",
        "capacityType",
        "home",
        "ssh",
        "opencvVersion",
        "pytorchVersion",
        "region",
        "owner",
        "placement",
        "poolRef",
    ]);
    let value = if dice.percent(8) {
        hostile::value(dice)
    } else {
        wish(field, dice)
    };
    if value.is_null() {
        parameters.remove(field);
    } else {
        parameters.insert(field.to_owned(), value);
    }
}

fn wish(field: &str, dice: &mut Dice) -> Value {
    let text = |texts: &[&str], dice: &mut Dice| json!(*dice.pick(texts));
    match field {
        "instanceType" => text(
            &["g4dn.xlarge", "g5.xlarge", "g4dn.2xlarge", "p5.48xlarge"],
            dice,
        ),
        "instanceTypes" => dice
            .pick(&[
                json!([]),
                json!(["g5.xlarge"]),
                json!(["g4dn.xlarge", "g4dn.xlarge"]),
            ])
            .clone(),
        "flavor" => match dice.below(3) {
            0 => Value::Null,
            _ => text(&["t4", "cpu-small", "nobody"], dice),
        },
        "gpu" => dice
            .pick(&[
                Value::Null,
                json!({"name": "T4"}),
                json!({"name": "t4", "count": 4}),
                json!({"memory": "20Gi"}),
                json!({"name": "H100", "count": 8, "memory": "80Gi"}),
            ])
            .clone(),
        "image" => match dice.below(3) {
            0 => Value::Null,
            _ => text(&["default", "plain", "gone"], dice),
        },
        "capacityType" => {
            let market = *dice.pick(&["OnDemand", "OnDemand", "Spot", "SpotWithFallback", ""]);
            if market.is_empty() {
                Value::Null
            } else {
                json!(market)
            }
        }
        "home" => match dice.below(5) {
            0 => Value::Null,
            4 => json!({"size": *dice.pick(&["50Gi", "80Gi", "16Ti", "17Ti"])}),
            n => json!({"sizeGiB": *[1, 50, 80].get(n - 1).unwrap()}),
        },
        "ssh" => json!({
            "publicKeys": vec![KEY; dice.below(3)],
            "allowedCidrs": *dice.pick(&[
                &[][..],
                &["10.1.0.0/16"],
                &["203.0.113.64/28", "10.1.2.3/16"],
                &["192.0.2.0/24"],
                &["0.0.0.0/0"],
            ]),
        }),
        "opencvVersion" => text(&["4.8.0", "4.10.0", "4.8.0.76"], dice),
        "pytorchVersion" => text(&["2.12.1", "2.11.0"], dice),
        "region" => match dice.below(4) {
            0 => Value::Null,
            _ => text(&["us-east-1", "eu-west-1", "ap-south-2"], dice),
        },
        "owner" => text(&["alice", "bob", "-"], dice),
        "placement" => json!("EC2"),
        _ => hostile::value(dice),
    }
}

/// Changes the Composition's policy.
pub fn policy(request: &mut Value, dice: &mut Dice, corpus: &Corpus) {
    if dice.percent(10) {
        let policy = dice.pick(&corpus.policies).clone();
        object(request, &[]).insert("input".to_owned(), policy);
        return;
    }
    let (path, value) = dice
        .pick(&[
            (
                &["instance"][..],
                json!({"replaceOnUserDataChange": true, "sudo": true}),
            ),
            (
                &["instance"],
                json!({"rootVolumeSizeGiB": 200, "tags": {"a": "b"}}),
            ),
            (&["home"], json!({"onDelete": "Delete"})),
            (&["home"], json!({"onDelete": "Retain"})),
            (
                &["ownerBinding"],
                json!({"namespaceLabel": "platform.acme.io/owner"}),
            ),
            (&["allowedInstanceTypes"], json!(["g4dn.*", "g5.*"])),
            (&["allowedInstanceTypes"], json!(["g5.xlarge"])),
            (&["allowedCapacityTypes"], json!(["OnDemand", "Spot"])),
            (&["allowedRegions"], json!(["us-east-1", "eu-west-1"])),
            (
                &["catalogue"],
                json!({"name": "gpu-workspaces", "further": ["prices"]}),
            ),
            (&["catalogue"], json!({"name": "gpu-workspaces"})),
            (
                &["catalogue"],
                json!({"name": "other", "further": ["a", "a"]}),
            ),
            (&["ceilings"], json!({"hourlyUsd": 1.0, "homeSizeGiB": 100})),
            (
                &["defaults"],
                json!({"capacityType": "OnDemand", "sshCidrs": []}),
            ),
            (
                &["defaults"],
                json!({"capacityType": "Spot", "image": "plain"}),
            ),
            (&["sshCidrCeiling"], json!(null)),
            (&["minimumRefreshInterval"], json!("1h")),
            (&["refreshSecond"], json!(3)),
            (&["behaviourVersion"], json!("v2")),
            (&["behaviourVersion"], json!("v3")),
            (&["onDemand"], json!("ProviderAws")),
            (&["onDemand"], json!("SpotPool")),
        ])
        .clone();
    let value = if dice.percent(8) {
        hostile::value(dice)
    } else {
        value
    };
    let policy = object(request, &["input"]);
    for field in path {
        if value.is_null() {
            policy.remove(*field);
        } else {
            policy.insert((*field).to_owned(), value.clone());
        }
    }
}

/// A run that began a month ago. By the policy and by the last call's record, it was to last an hour.
pub fn overdue(request: &mut Value, dice: &mut Dice) {
    let lifecycle = object(request, &["input", "lifecycle"]);
    lifecycle.insert("maxLifetime".to_owned(), json!({"maximum": "1h"}));
    let status = memory(request);
    let limits = json!({"maxLifetime": "1h"});
    let record = json!({"startedAt": "2026-10-20T12:00:00Z", "limits": limits});
    status.insert("lifecycle".to_owned(), record);
    if dice.percent(50) {
        let mistake = dice
            .pick(&[json!({"region": "mars"}), json!({"owner": "-"}), json!([1])])
            .clone();
        let spec = object(request, &["observed", "composite", "resource", "spec"]);
        case::merge(spec.entry("parameters").or_insert(Value::Null), &mistake);
    }
}

/// Changes what Crossplane fetched: an answer is missing or empty, comes from another case, or has
/// other contents.
pub fn answers(request: &mut Value, dice: &mut Dice, corpus: &Corpus) {
    let name = *dice.pick(&["catalogue", "attachments", "namespace", "catalogue-prices"]);
    let answers = object(request, &["requiredResources"]);
    match dice.below(7) {
        0 => drop(answers.remove(name)),
        1 => drop(answers.insert(name.to_owned(), json!({"items": []}))),
        2 | 3 => {
            let (name, answer) = dice.pick(&corpus.answers).clone();
            answers.insert(name, answer);
        }
        4 => {
            let (_, answer) = dice.pick(&corpus.answers).clone();
            answers.insert(name.to_owned(), answer);
        }
        _ => catalogue(request, dice),
    }
}

fn catalogue(request: &mut Value, dice: &mut Dice) {
    let items = request.pointer_mut("/requiredResources/catalogue/items/0/resource");
    let Some(config) = items else { return };
    let network = dice
        .pick(&[
            json!({"subnetIds": ["subnet-1"], "vpcId": "vpc-1"}),
            json!({"subnetIds": ["subnet-2", "subnet-1"]}),
            json!({"securityGroupIds": ["sg-1"]}),
            json!({"subnetIds": ["subnet-1"], "securityGroupIds": ["sg-1", "sg-2"]}),
            json!({}),
        ])
        .clone();
    let image = json!({"us-east-1": {"default": {"id": "ami-0000000000000beef"}}});
    let (field, value) = match dice.below(6) {
        0 | 1 => ("networks", json!({"us-east-1": network})),
        2 => ("images", image),
        3 => ("owners", json!({"alice": {"publicKeys": [KEY]}, "bob": {}})),
        4 => (
            "prices",
            json!({"asOf": "2026-11-01", "hourlyUsd": {"us-east-1": {"g4dn.xlarge": 0.5}}}),
        ),
        _ => ("image", hostile::value(dice)),
    };
    object(config, &["data"]).insert(field.to_owned(), value);
}
