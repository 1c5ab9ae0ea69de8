//! Chooses the instance types of a workspace, and what comes with them: by name, by flavor, by GPU,
//! or as the policy's default.
//!
//! What the claim does not name itself is chosen when the workspace starts, and kept in status until
//! it stops. So no change of a flavor, a policy or the catalogue replaces a machine that runs.

use api::capacity::CapacityType;
use api::policy::WorkspacePolicy;
use api::workspace::{InstanceChoice, WorkspaceParameters};
use function_runtime::outcome::{Refusal, Unresolved};
use function_runtime::request::Request;
use function_runtime::validation::Violation;
use function_workspace::flavor;

use crate::gpu;
use crate::instance_types::{self, InstanceType};

const FLAVOR: &str = "spec.parameters.flavor";

/// What a claim, a flavor, a wish for GPUs or the policy chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Instance types in order of preference, never empty.
    pub instance_types: Vec<InstanceType>,
    /// The name of the image; none if only the policy names one.
    pub image: Option<String>,
    /// The market; none if only claim or policy name one.
    pub capacity_type: Option<CapacityType>,
    /// The size of the root volume in GiB; none if only the policy names one.
    pub root_volume_size_gib: Option<i32>,
    /// What the workspace keeps while it runs; none if the claim names the types itself.
    pub record: Option<InstanceChoice>,
}

impl Choice {
    /// Chooses for a claim. `recorded` is the choice of a workspace that runs: it holds as long as
    /// the claim asks for the same.
    ///
    /// # Errors
    ///
    /// The flavor cannot be read, or nothing has what the claim asks for.
    pub fn of(
        parameters: &WorkspaceParameters,
        policy: &WorkspacePolicy,
        region: &str,
        recorded: Option<&InstanceChoice>,
        request: &Request,
    ) -> Result<Self, Unresolved> {
        let Some(wish) = Wish::of(parameters) else {
            return Ok(Self {
                instance_types: instance_types::named(parameters),
                ..Self::default()
            });
        };
        let (asked, path) = wish.asked();
        if let Some(recorded) = recorded.filter(|recorded| recorded.asked == asked) {
            return Ok(Self::kept(recorded.clone(), path));
        }
        let chosen = match wish {
            Wish::Flavor(name) => of_flavor(name, request)?,
            Wish::Gpu(wish) => gpu::choose(wish, policy, region, request)?,
            Wish::Nothing => InstanceChoice {
                why: "neither flavor, gpu nor instanceType is set".to_owned(),
                instance_types: vec![instance_types::default(policy).to_owned()],
                ..InstanceChoice::default()
            },
        };
        Ok(Self::kept(InstanceChoice { asked, ..chosen }, path))
    }

    fn kept(record: InstanceChoice, path: &str) -> Self {
        let types = record.instance_types.iter();
        let types = types.map(|name| InstanceType {
            name: name.clone(),
            path: path.to_owned(),
        });
        Self {
            instance_types: types.collect(),
            image: record.image.clone(),
            capacity_type: record.capacity_type,
            root_volume_size_gib: record.root_volume_size_gib,
            record: Some(record),
        }
    }
}

/// What a claim asks for that does not name instance types.
enum Wish<'a> {
    /// The claim names a flavor.
    Flavor(&'a str),
    /// The claim asks for GPUs.
    Gpu(&'a api::workspace::GpuWish),
    /// The claim names nothing.
    Nothing,
}

impl<'a> Wish<'a> {
    /// The wish of a claim; none if the claim names instance types.
    fn of(parameters: &'a WorkspaceParameters) -> Option<Self> {
        let names_types =
            parameters.instance_type.is_some() || !parameters.instance_types.is_empty();
        match (&parameters.flavor, &parameters.gpu) {
            (Some(flavor), _) => Some(Self::Flavor(flavor)),
            (None, Some(gpu)) => Some(Self::Gpu(gpu)),
            (None, None) => (!names_types).then_some(Self::Nothing),
        }
    }

    /// What the claim asks for, as `status.choice` says it, and the field that asks for it.
    fn asked(&self) -> (String, &'static str) {
        match self {
            Self::Flavor(name) => (format!("flavor {name}"), FLAVOR),
            Self::Gpu(wish) => (format!("gpu {}", gpu::text(wish)), gpu::PATH),
            Self::Nothing => {
                let default = "the default of the policy".to_owned();
                (default, instance_types::DEFAULT_PATH)
            }
        }
    }
}

/// The EC2 half of a flavor.
fn of_flavor(name: &str, request: &Request) -> Result<InstanceChoice, Unresolved> {
    let flavor = flavor::of(request, name)?;
    let Some(instance) = flavor.ec2 else {
        let problem = format!(
            "WorkspaceFlavor {name} describes no EC2 instances, it is for placement Cluster only: \
             choose another flavor"
        );
        return Err(Refusal::parameters(Violation::new(FLAVOR, problem)).into());
    };
    Ok(InstanceChoice {
        asked: String::new(),
        why: format!("WorkspaceFlavor {name} has them"),
        instance_types: instance.instance_types,
        image: instance.image,
        capacity_type: instance.capacity_type,
        root_volume_size_gib: instance.root_volume_size_gib,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy() -> WorkspacePolicy {
        let input = json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v3",
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*", "g5.*", "p4d.*"],
            "ceilings": {"hourlyUsd": 10}
        });
        function_workspace::policy::read(Some(&input)).unwrap()
    }

    fn described(gpu: &str, gpus: i32, memory: &str) -> Value {
        json!({"gpu": gpu, "gpus": gpus, "gpuMemory": memory, "vcpus": 4, "memory": "16Gi"})
    }

    fn request() -> Request<'static> {
        let catalogue = json!({"data": {
            "images": {"us-east-1": {"default": {"id": "ami-1"}}},
            "instanceTypes": {
                "g4dn.xlarge": described("T4", 1, "16Gi"),
                "g4dn.2xlarge": described("T4", 1, "16Gi"),
                "g4dn.12xlarge": described("T4", 4, "16Gi"),
                "g5.xlarge": described("A10G", 1, "24Gi"),
                "g6.xlarge": described("L4", 1, "24Gi"),
                "p4d.24xlarge": described("A100", 8, "40Gi"),
            },
            "prices": {"asOf": "2026-11-01", "hourlyUsd": {"us-east-1": {
                "g4dn.xlarge": 0.526, "g4dn.2xlarge": 0.752, "g4dn.12xlarge": 3.912,
                "g5.xlarge": 1.006, "p4d.24xlarge": 32.77
            }}}
        }});
        let flavor = json!({"spec": {"ec2": {
            "instanceTypes": ["g5.xlarge", "g4dn.xlarge"], "image": "cuda",
            "capacityType": "OnDemand", "rootVolumeSizeGiB": 200
        }}});
        Request {
            required: [
                ("catalogue".to_owned(), vec![catalogue.into()]),
                ("flavor".to_owned(), vec![flavor.into()]),
            ]
            .into(),
            ..Request::default()
        }
    }

    fn choose(claim: &Value, recorded: Option<&InstanceChoice>) -> Result<Choice, String> {
        let mut parameters = json!({"owner": "alice"});
        for (field, value) in claim.as_object().unwrap() {
            parameters[field] = value.clone();
        }
        let parameters = serde_json::from_value(parameters).unwrap();
        Choice::of(&parameters, &policy(), "us-east-1", recorded, &request())
            .map_err(|why| why.to_string())
    }

    fn types(claim: &Value) -> Vec<String> {
        let chosen = choose(claim, None).unwrap().instance_types;
        chosen.into_iter().map(|t| t.name).collect()
    }

    #[test]
    fn a_wish_for_a_gpu_gets_every_type_that_has_it_and_the_cheapest_first() {
        let wish = |gpu: Value| types(&json!({"gpu": gpu}));
        assert_eq!(wish(json!({"name": "t4"})), ["g4dn.xlarge", "g4dn.2xlarge"]);
        assert_eq!(wish(json!({"name": "T4", "count": 4})), ["g4dn.12xlarge"]);
        assert_eq!(wish(json!({"memory": "20Gi"})), ["g5.xlarge"]);
        let all = ["g4dn.xlarge", "g4dn.2xlarge", "g5.xlarge"];
        assert_eq!(wish(json!({"memory": "16Gi"})), all);
    }

    #[test]
    fn a_wish_that_no_type_satisfies_is_answered_with_what_there_is_and_its_price() {
        let refused = choose(&json!({"gpu": {"name": "A100", "count": 8}}), None).unwrap_err();
        assert_eq!(
            refused,
            "spec.parameters.gpu: no instance type that the policy allows has 8 x A100 in \
             us-east-1; there are g4dn.xlarge (1 x T4 with 16Gi, 0.526 USD per hour), g4dn.2xlarge \
             (1 x T4 with 16Gi, 0.752 USD per hour), g5.xlarge (1 x A10G with 24Gi, 1.006 USD per \
             hour), g4dn.12xlarge (4 x T4 with 16Gi, 3.912 USD per hour)"
        );
    }

    #[test]
    fn a_flavor_says_which_types_image_market_and_disk_an_instance_has() {
        let chosen = choose(&json!({"flavor": "t4"}), None).unwrap();
        let names: Vec<_> = chosen.instance_types.iter().map(|t| &t.name).collect();
        assert_eq!(names, ["g5.xlarge", "g4dn.xlarge"]);
        assert_eq!(chosen.image.as_deref(), Some("cuda"));
        assert_eq!(chosen.capacity_type, Some(CapacityType::OnDemand));
        assert_eq!(chosen.root_volume_size_gib, Some(200));
        let record = chosen.record.unwrap();
        assert_eq!(record.asked, "flavor t4");
    }

    #[test]
    fn a_changed_flavor_or_policy_replaces_no_machine_that_runs() {
        for claim in [
            json!({"flavor": "t4"}),
            json!({"gpu": {"name": "T4"}}),
            json!({}),
        ] {
            let mut record = choose(&claim, None).unwrap().record.unwrap();
            record.instance_types = vec!["g5.2xlarge".to_owned()];
            let kept = choose(&claim, Some(&record)).unwrap();
            assert_eq!(kept.record.as_ref(), Some(&record), "{claim}");
            let other = choose(&json!({"gpu": {"name": "A10G"}}), Some(&record)).unwrap();
            assert_ne!(other.record.as_ref(), Some(&record), "{claim}");
        }
    }

    #[test]
    fn a_claim_that_names_types_gets_these_and_no_others() {
        let claim = json!({"instanceTypes": ["g5.xlarge", "g4dn.xlarge"]});
        assert_eq!(types(&claim), ["g5.xlarge", "g4dn.xlarge"]);
        let claim = json!({"instanceType": "g5.xlarge", "instanceTypes": ["g5.xlarge"]});
        assert_eq!(types(&claim), ["g5.xlarge"]);
        assert_eq!(choose(&claim, None).unwrap().record, None);
        assert_eq!(types(&json!({})), ["g4dn.xlarge"]);
    }
}
