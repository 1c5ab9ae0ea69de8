//! The claim that `create` writes.

use serde_json::{Map, Value, json};

use crate::grammar::creating::{Capacity, Create, Where};
use crate::object::{Kind, text};
use crate::problem::{Code, Problem};

/// The claim for a workspace.
///
/// `placements` are those of the flavor, if it could be read. `keys` are the public keys of this
/// machine.
pub fn claim(
    wish: &Create,
    namespace: &str,
    placements: Option<&str>,
    keys: &[String],
) -> Result<Value, Problem> {
    let name = wish
        .name
        .as_ref()
        .ok_or_else(|| Problem::usage("NAME", "name the workspace"))?;
    let placement = placement(wish, placements)?;
    Ok(json!({
        "apiVersion": Kind::Claim.api_version(),
        "kind": Kind::Claim.kind(),
        "metadata": {"name": name.as_str(), "namespace": namespace},
        "spec": {"parameters": parameters(wish, placement, keys)?},
    }))
}

/// The flavor that is asked for.
pub fn flavor(wish: &Create) -> Option<&str> {
    wish.flavor.as_deref().or(wish.positional_flavor.as_deref())
}

/// Where a flavor is offered, as the platform writes it into the flavor's status: `EC2`, `Cluster` or
/// `EC2, Cluster`. A new flavor has no status yet, so its halves tell.
pub fn placements(flavor: &Value) -> String {
    let halves = || {
        let has = |field: &str| flavor.pointer(field).is_some();
        let both = [("EC2", has("/spec/ec2")), ("Cluster", has("/spec/image"))];
        let offered = both
            .into_iter()
            .filter_map(|(place, is)| is.then_some(place));
        offered.collect::<Vec<_>>().join(", ")
    };
    let told = text(flavor, "/status/placements").map(str::to_owned);
    told.unwrap_or_else(halves)
}

/// Where the workspace runs: as asked, or where its options belong, or where its flavor is offered.
pub fn placement(wish: &Create, placements: Option<&str>) -> Result<Where, Problem> {
    let for_pods = for_pods(wish);
    let for_ec2 = for_ec2(wish);
    if let (Some(pods), Some(ec2)) = (for_pods, for_ec2) {
        return Err(Problem::usage(
            ec2,
            format!("{ec2} is for an EC2 instance, {pods} is for pods in the cluster"),
        ));
    }
    let refuse = |option: &str, place: &str| {
        let message = format!("{option} is not possible with --placement {place}");
        Err(Problem::usage(option, message))
    };
    match (wish.placement, for_pods, for_ec2) {
        (Some(Where::Ec2), Some(option), _) => return refuse(option, "ec2"),
        (Some(Where::Cluster), _, Some(option)) => return refuse(option, "cluster"),
        (Some(place), ..) => return Ok(place),
        (None, Some(_), _) => return Ok(Where::Cluster),
        (None, _, Some(_)) => return Ok(Where::Ec2),
        (None, None, None) => {}
    }
    match placements {
        Some("Cluster") => Ok(Where::Cluster),
        _ => Ok(Where::Ec2),
    }
}

/// The first option that only pods have.
fn for_pods(wish: &Create) -> Option<&'static str> {
    let given = [
        (wish.distributed, "--distributed"),
        (wish.replicas.is_some(), "--replicas"),
        (wish.gpus_per_node.is_some(), "--gpus-per-node"),
        (wish.queue.is_some(), "--queue"),
        (wish.priority.is_some(), "--priority"),
    ];
    given
        .into_iter()
        .find(|(is_given, _)| *is_given)
        .map(|(_, option)| option)
}

/// The first option that only EC2 instances have.
fn for_ec2(wish: &Create) -> Option<&'static str> {
    let given = [
        (!wish.instance_type.is_empty(), "--instance-type"),
        (wish.gpu.is_some(), "--gpu"),
        (wish.gpu_memory.is_some(), "--gpu-memory"),
        (wish.region.is_some(), "--region"),
        (wish.capacity.is_some(), "--capacity"),
        (wish.image.is_some(), "--image"),
    ];
    given
        .into_iter()
        .find(|(is_given, _)| *is_given)
        .map(|(_, option)| option)
}

fn parameters(wish: &Create, placement: Where, keys: &[String]) -> Result<Value, Problem> {
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| {
        let is_absent = match &value {
            Value::Null => true,
            Value::Object(map) => map.values().all(Value::is_null),
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        if !is_absent {
            all.insert(key.to_owned(), without_null(value));
        }
    };
    if placement == Where::Cluster {
        put("placement", json!("Cluster"));
    }
    put("owner", json!(wish.owner));
    put("flavor", json!(flavor(wish)));
    put("instanceType", json!(wish.instance_type.first()));
    put(
        "instanceTypes",
        json!(wish.instance_type.get(1..).unwrap_or_default()),
    );
    put("gpu", gpu(wish)?);
    put("region", json!(wish.region));
    put("image", json!(wish.image));
    put("capacityType", json!(wish.capacity.map(capacity)));
    put("opencvVersion", json!(wish.opencv));
    put("pytorchVersion", json!(wish.pytorch));
    put("home", json!({"size": wish.home}));
    let distributed = json!({"nodes": wish.replicas, "gpusPerNode": wish.gpus_per_node});
    put("distributed", distributed);
    put(
        "queue",
        json!({"name": wish.queue, "priorityClass": wish.priority}),
    );
    put(
        "lifecycle",
        json!({"stopAfterIdle": wish.idle, "maxLifetime": wish.lifetime}),
    );
    let networks = Some(&wish.allow).filter(|networks| !networks.is_empty());
    let keys = Some(keys).filter(|keys| !keys.is_empty());
    put("ssh", json!({"publicKeys": keys, "allowedCidrs": networks}));
    Ok(Value::Object(all))
}

fn without_null(value: Value) -> Value {
    match value {
        Value::Object(map) => map.into_iter().filter(|(_, one)| !one.is_null()).collect(),
        other => other,
    }
}

fn gpu(wish: &Create) -> Result<Value, Problem> {
    let (name, count) = match wish
        .gpu
        .as_deref()
        .map(|gpu| gpu.split_once(':').unwrap_or((gpu, "1")))
    {
        None => (None, None),
        Some((name, count)) => {
            let count: u16 = count.parse().map_err(|_| {
                Problem::usage("--gpu", "write the GPU and how many, for example T4:2")
            })?;
            (
                Some(name.to_owned()),
                Some(count).filter(|count| *count != 1),
            )
        }
    };
    Ok(json!({"name": name, "count": count, "memory": wish.gpu_memory}))
}

fn capacity(capacity: Capacity) -> &'static str {
    match capacity {
        Capacity::Spot => "Spot",
        Capacity::Fallback => "SpotWithFallback",
        Capacity::OnDemand => "OnDemand",
    }
}

/// The parameters that differ between an existing claim and a wanted one, both with the API server's
/// defaults: `spec.parameters.home.size: 10Gi, not 20Gi`.
pub fn differences(existing: &Value, wanted: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let at = |claim: &Value| {
        claim
            .pointer("/spec/parameters")
            .cloned()
            .unwrap_or_default()
    };
    compare("spec.parameters", &at(existing), &at(wanted), &mut found);
    found
}

fn compare(path: &str, existing: &Value, wanted: &Value, found: &mut Vec<String>) {
    match (existing, wanted) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> =
                one.keys().chain(other.keys()).collect();
            for key in keys {
                let null = Value::Null;
                let (a, b) = (
                    one.get(key).unwrap_or(&null),
                    other.get(key).unwrap_or(&null),
                );
                compare(&format!("{path}.{key}"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => {
            let shown = |value: &Value| match value {
                Value::Null => "unset".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            found.push(format!("{path}: {}, not {}", shown(a), shown(b)));
        }
    }
}

/// The problem of a claim that exists and is another one.
pub fn exists(object: &str, name: &str, differences: &[String]) -> Problem {
    let field = differences
        .first()
        .and_then(|one| one.split(':').next())
        .unwrap_or_default();
    let message = format!("it exists, and is another one: {}", differences.join("; "));
    Problem::new(Code::Exists, "AlreadyExists", message)
        .of(object)
        .field(field)
        .next(format!(
            "choose another name, or look at it: devctl show {name}"
        ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::grammar::{Arguments, Command};

    fn wish(words: &str) -> Create {
        let words = format!("devctl create {words}");
        match Arguments::try_parse_from(words.split(' ')).unwrap().command {
            Command::Create(wish) => *wish,
            other => panic!("{other:?}"),
        }
    }

    fn parameters_of(words: &str, placements: Option<&str>) -> Value {
        claim(&wish(words), "dev-dave", placements, &[]).unwrap()["spec"]["parameters"].clone()
    }

    #[test]
    fn a_flavor_decides_where_a_workspace_runs() {
        for (placements, expected) in [
            (
                Some("Cluster"),
                json!({"placement": "Cluster", "flavor": "gpu-large"}),
            ),
            (Some("EC2"), json!({"flavor": "gpu-large"})),
            (Some("EC2, Cluster"), json!({"flavor": "gpu-large"})),
            (None, json!({"flavor": "gpu-large"})),
        ] {
            assert_eq!(parameters_of("my-dev gpu-large", placements), expected);
            assert_eq!(
                parameters_of("my-dev --flavor gpu-large", placements),
                expected
            );
        }
    }

    #[test]
    fn several_replicas_are_pods() {
        let words = "training-job --flavor gpu-large --distributed --replicas 4";
        assert_eq!(
            parameters_of(words, Some("EC2, Cluster")),
            json!({"placement": "Cluster", "flavor": "gpu-large", "distributed": {"nodes": 4}})
        );
    }

    #[test]
    fn every_option_has_its_field() {
        let words = "a --instance-type g5.xlarge,g4dn.xlarge --region eu-central-1 --capacity fallback \
                     --home 100Gi --idle 2h --lifetime 8h --opencv 4.8.0 --pytorch 2.12.1 --owner alice \
                     --allow 203.0.113.0/24 --image cuda";
        assert_eq!(
            parameters_of(
                &words.split_whitespace().collect::<Vec<_>>().join(" "),
                None
            ),
            json!({
                "owner": "alice", "instanceType": "g5.xlarge", "instanceTypes": ["g4dn.xlarge"],
                "region": "eu-central-1", "capacityType": "SpotWithFallback", "image": "cuda",
                "home": {"size": "100Gi"}, "opencvVersion": "4.8.0", "pytorchVersion": "2.12.1",
                "lifecycle": {"stopAfterIdle": "2h", "maxLifetime": "8h"},
                "ssh": {"allowedCidrs": ["203.0.113.0/24"]},
            })
        );
        assert_eq!(
            parameters_of("a --gpu T4:2 --gpu-memory 16Gi", None),
            json!({"gpu": {"name": "T4", "count": 2, "memory": "16Gi"}})
        );
        assert_eq!(
            parameters_of("a --queue q --priority high", None),
            json!({"placement": "Cluster", "queue": {"name": "q", "priorityClass": "high"}})
        );
    }

    #[test]
    fn a_flavor_that_the_platform_has_not_looked_at_yet_tells_its_placements_itself() {
        let pods = json!({"image": "i", "cpu": "1", "memory": "1Gi"});
        let mut both = pods.clone();
        both["ec2"] = json!({"instanceTypes": ["g4dn.xlarge"]});
        for (flavor, expected) in [
            (json!({"spec": pods}), "Cluster"),
            (json!({"spec": both}), "EC2, Cluster"),
            (json!({"spec": {"ec2": both["ec2"]}}), "EC2"),
            (
                json!({"spec": both, "status": {"placements": "EC2"}}),
                "EC2",
            ),
        ] {
            assert_eq!(placements(&flavor), expected, "{flavor}");
        }
    }

    #[test]
    fn what_a_placement_cannot_do_is_refused_by_name() {
        for (words, option) in [
            (
                "a --distributed --replicas 2 --instance-type g5.xlarge",
                "--instance-type",
            ),
            (
                "a --placement ec2 --distributed --replicas 2",
                "--distributed",
            ),
            ("a --placement cluster --capacity spot", "--capacity"),
            ("a --gpu T4:many", "--gpu"),
        ] {
            let problem = claim(&wish(words), "n", None, &[]).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some(option), "{words}");
            assert_eq!(problem.code, Code::Usage);
        }
    }

    #[test]
    fn another_claim_of_the_same_name_is_told_apart() {
        let claim =
            |size: &str| json!({"spec": {"parameters": {"home": {"size": size}, "flavor": "t4"}}});
        assert_eq!(differences(&claim("1Gi"), &claim("1Gi")), [""; 0]);
        assert_eq!(
            differences(
                &claim("1Gi"),
                &json!({"spec": {"parameters": {"flavor": "t4"}}})
            ),
            ["spec.parameters.home: {\"size\":\"1Gi\"}, not unset"]
        );
        let problem = exists(
            "workspace a/b",
            "b",
            &differences(&claim("1Gi"), &claim("2Gi")),
        );
        assert_eq!(problem.field.as_deref(), Some("spec.parameters.home.size"));
    }
}
