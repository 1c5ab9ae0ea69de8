//! The fuzzer's own way to read a request. It follows the documents of Crossplane and of the
//! providers, and uses none of the function's decisions. It shares only the API types of a
//! pool.

use std::collections::BTreeMap;

use api::pool::{SpotPoolParameters, SpotPoolStatus};
use function_sdk_rust::proto::v1::{Resource, RunFunctionRequest};
use function_sdk_rust::resource::struct_to_json;
use serde::Deserialize as _;
use serde_json::Value;

use crate::case::RECORD;
use crate::case::own_names::is_own;

const EXTERNAL_NAME: &str = "/metadata/annotations/crossplane.io~1external-name";

/// A request, as the fuzzer reads it.
pub struct View {
    policy: Value,
    pub xr: Value,
    /// Observed resources by key.
    pub observed: BTreeMap<String, Value>,
    /// The objects that Crossplane fetched, by requirement.
    pub required: BTreeMap<String, Vec<Value>>,
}

/// The properties of an observed compute resource.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent observations of one machine"
)]
pub struct Machine {
    /// The EC2 ids of its instances.
    pub ids: Vec<String>,
    /// Whether it matches the claim.
    pub fits: bool,
    /// Whether an instance runs and has an address.
    pub serves: bool,
    /// Whether its provider reports no problem.
    pub in_order: bool,
    /// Whether an instance is stopped, with its disk.
    pub stopped: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether its parameters or its status have an unknown shape.
    pub unreadable: bool,
}

impl View {
    /// Reads a request.
    pub fn new(request: &RunFunctionRequest) -> Self {
        let json = |resource: &Resource| resource.resource.as_ref().map(struct_to_json);
        let observed = request.observed.as_ref();
        let composed = observed.iter().flat_map(|o| &o.resources);
        Self {
            policy: request
                .input
                .as_ref()
                .map(struct_to_json)
                .unwrap_or_default(),
            xr: observed
                .and_then(|o| o.composite.as_ref())
                .and_then(json)
                .unwrap_or_default(),
            observed: composed
                .filter_map(|(key, resource)| Some((key.clone(), json(resource)?)))
                .collect(),
            required: request
                .required_resources
                .iter()
                .map(|(name, found)| (name.clone(), found.items.iter().filter_map(json).collect()))
                .collect(),
        }
    }

    /// The first requirement that Crossplane has not fetched, or could not find.
    pub fn unresolved(&self) -> Option<String> {
        let further = self
            .policy
            .pointer("/catalogue/further")
            .and_then(Value::as_array);
        let further = further.into_iter().flatten().filter_map(Value::as_str);
        let configs = further.map(|name| format!("catalogue-{name}"));
        let binding = self
            .policy
            .get("ownerBinding")
            .is_some_and(|b| !b.is_null());
        std::iter::once("catalogue".to_owned())
            .chain(configs)
            .chain(binding.then(|| "namespace".to_owned()))
            .find(|name| self.required.get(name).is_none_or(Vec::is_empty))
    }

    /// The status that the last call wrote. Developers may write the status of a namespaced
    /// composite, so its record counts. A status without a record counts if there are resources: an
    /// earlier version of the function wrote no record.
    pub fn status(&self) -> Option<&Value> {
        if !self.is_namespaced() {
            return self.xr.get("status");
        }
        let fetched = || self.required.get(RECORD)?.first();
        match self.observed.get(RECORD).or_else(fetched) {
            Some(record) => record.pointer("/spec/status"),
            None => self
                .xr
                .get("status")
                .filter(|_| self.observed.keys().any(|key| is_own(key))),
        }
    }

    /// A text in the Composition's policy.
    pub fn policy_text(&self, at: &str) -> Option<&str> {
        text(&self.policy, at)
    }

    /// Whether the last call said that the software is installed.
    pub fn called_software_ready(&self) -> bool {
        condition(&self.xr, "SoftwareReady") == Some("True")
    }

    /// Whether the Composition's policy forbids the start of a workspace without access.
    pub fn requires_access(&self) -> bool {
        self.policy_text("/behaviourVersion") == Some("v3")
            && self.policy.pointer("/requireAccess") != Some(&Value::Bool(false))
    }

    /// Whether the composite is namespaced.
    pub fn is_namespaced(&self) -> bool {
        text(&self.xr, "/metadata/namespace").is_some()
    }

    /// The id of the machine of the last call.
    pub fn recorded(&self) -> Option<&str> {
        text(self.status()?, "/instanceId")
    }

    /// Whether the claim asks for a home of provider-aws, or there is or was one.
    pub fn has_home(&self) -> bool {
        let home = self.xr.pointer("/spec/parameters/home");
        (home.is_some_and(|h| !h.is_null()) && self.is_of_provider_aws())
            || self.observed.contains_key("home")
            || self.recorded_home().is_some()
    }

    /// The recorded volume's id and zone.
    pub fn recorded_home(&self) -> Option<(&str, &str)> {
        // A home that a pool manages is not a home of provider-aws.
        let home = self
            .status()?
            .get("home")
            .filter(|home| home.get("pool").is_none())?;
        home.get("attachedTo")
            .is_none_or(|a| a.is_string() || a.is_null())
            .then_some(())?;
        Some((home.get("volumeId")?.as_str()?, home.get("zone")?.as_str()?))
    }

    /// Whether the policy allows that a home is deleted.
    pub fn lets_homes_go(&self) -> bool {
        self.deletes_homes() || text(&self.policy, "/home/onDelete") == Some("Snapshot")
    }

    /// Whether the policy allows the function to make a lost volume again.
    pub fn deletes_homes(&self) -> bool {
        text(&self.policy, "/home/onDelete") == Some("Delete")
    }

    /// The capacity type of the claim, or else of the policy's defaults.
    pub fn market(&self) -> &str {
        text(&self.xr, "/spec/parameters/capacityType")
            .or_else(|| text(&self.policy, "/defaults/capacityType"))
            .unwrap_or("SpotWithFallback")
    }

    /// Whether provider-aws is to make the machine. Before v3, it makes all on-demand machines. From
    /// v3 on, the provider of an existing home or machine stays, and else the policy decides.
    pub fn is_of_provider_aws(&self) -> bool {
        if self.market() != "OnDemand" {
            return false;
        }
        let knows_pools = self.policy_text("/behaviourVersion") == Some("v3");
        let stays = self
            .provider_of_home()
            .or_else(|| self.provider_of_machine());
        let of_pool = stays.unwrap_or(self.policy_text("/onDemand") != Some("ProviderAws"));
        !(knows_pools && of_pool)
    }

    /// Whether a pool has the home volume; none without a home.
    fn provider_of_home(&self) -> Option<bool> {
        if self.observed.contains_key("home") || self.recorded_home().is_some() {
            return Some(false);
        }
        let recorded = self.status().and_then(|status| status.get("home"));
        let recorded = recorded.is_some_and(|home| home.get("pool").is_some());
        let of_pool = |pool: &Value| pool.pointer("/spec/forProvider/home").is_some();
        (recorded || self.pools().any(of_pool)).then_some(true)
    }

    /// Whether a pool has the on-demand machine; none without one.
    fn provider_of_machine(&self) -> Option<bool> {
        let mut resources = self.observed.iter();
        let is_instance = |key: &str| is_hashed(key, "instance-");
        if resources.any(|(key, resource)| is_instance(key) && !is_deleting(resource)) {
            return Some(false);
        }
        let elsewhere = [RECORD, "workspace-connection"];
        let is_of_aws = |key: &String| {
            is_own(key) && !key.starts_with("cluster-") && !elsewhere.contains(&key.as_str())
        };
        if self.pools().next().is_none() && self.observed.keys().any(is_of_aws) {
            return Some(false);
        }
        let on_demand =
            |pool: &Value| text(pool, "/spec/forProvider/capacityType") == Some("OnDemand");
        self.pools().any(on_demand).then_some(true)
    }

    fn pools(&self) -> impl Iterator<Item = &Value> {
        let resources = self.observed.iter();
        resources
            .filter(|(key, _)| *key == "pool" || is_hashed(key, "pool-"))
            .map(|(_, pool)| pool)
    }

    /// Whether the claim names an image, by itself or by its flavor. The last call may have recorded
    /// what a flavor said then.
    pub fn names_image(&self) -> bool {
        let claimed = text(&self.xr, "/spec/parameters/image");
        let recorded = self.status().and_then(|s| text(s, "/choice/image"));
        let flavors = self.required.get("flavor").into_iter().flatten();
        let mut flavors = flavors.filter_map(|flavor| text(flavor, "/spec/ec2/image"));
        claimed.or(recorded).is_some() || flavors.next().is_some()
    }

    /// The networks that may connect. The host bits are cleared, as EC2 writes them.
    pub fn networks(&self) -> Vec<String> {
        let claimed = networks_at(&self.xr, "/spec/parameters/ssh/allowedCidrs");
        if claimed.is_empty() {
            networks_at(&self.policy, "/defaults/sshCidrs")
        } else {
            claimed
        }
    }

    /// The networks and the security group from which the bastion connects.
    pub fn bastion(&self) -> Vec<String> {
        let mut sources = networks_at(&self.policy, "/bastion/cidrs");
        let group = self.policy_text("/bastion/securityGroupId");
        sources.extend(group.map(str::to_owned));
        sources
    }

    /// Whether the policy has `bastion.only`: then EC2 admits the bastion's connections alone.
    pub fn is_of_bastion_only(&self) -> bool {
        self.policy.pointer("/bastion/only") == Some(&Value::Bool(true))
    }

    /// Whether an instance with other user data no longer fits.
    pub fn user_data_counts(&self) -> bool {
        self.policy.pointer("/instance/replaceOnUserDataChange") == Some(&Value::Bool(true))
    }

    /// The observed compute resources.
    pub fn machines(&self) -> BTreeMap<&str, Machine> {
        let compute = self.observed.iter().filter(|(key, _)| is_compute(key));
        compute
            .map(|(key, resource)| (key.as_str(), self.machine(key, resource)))
            .collect()
    }

    fn machine(&self, key: &str, resource: &Value) -> Machine {
        if key.starts_with("pool") {
            self.pool(resource)
        } else {
            self.instance(resource)
        }
    }

    fn types(&self) -> Vec<&str> {
        let parameters = self.xr.pointer("/spec/parameters").unwrap_or(&Value::Null);
        let first = text(parameters, "/instanceType");
        let further = parameters.get("instanceTypes").and_then(Value::as_array);
        let further = further.into_iter().flatten().filter_map(Value::as_str);
        let named: Vec<&str> = first.into_iter().chain(further).collect();
        if named.is_empty() {
            vec![self.default_type()]
        } else {
            named
        }
    }

    /// The type of a claim that names none: docs/policy.md, "Choosing a machine".
    fn default_type(&self) -> &str {
        const USUAL: &str = "g4dn.xlarge";
        let allowed = self.policy.get("allowedInstanceTypes");
        let allowed = allowed.and_then(Value::as_array).into_iter().flatten();
        let allowed: Vec<&str> = allowed.filter_map(Value::as_str).collect();
        let own = text(&self.policy, "/defaults/instanceType");
        let is_usual = allowed.iter().any(|one| [USUAL, "g4dn.*"].contains(one));
        let exact = allowed.iter().find(|one| !one.ends_with(".*"));
        let first = exact.filter(|_| !is_usual);
        own.or(first.copied()).unwrap_or(USUAL)
    }

    /// The zone of the home volume, where it is known.
    fn home_zones(&self) -> Vec<&str> {
        let volume = self.observed.get("home");
        let asked = volume.and_then(|v| text(v, "/spec/forProvider/availabilityZone"));
        let recorded = self.recorded_home().map(|(_, zone)| zone);
        asked.or(recorded).into_iter().collect()
    }

    fn instance(&self, instance: &Value) -> Machine {
        let at = |field: &str| text(instance, &format!("/status/atProvider/{field}"));
        let asked = |field: &str| text(instance, &format!("/spec/forProvider/{field}"));
        // While Ready is False, `atProvider` shows the previous machine.
        let is_current = condition(instance, "Ready") != Some("False");
        let state = at("instanceState").filter(|_| is_current);
        let is_address = |field: &str| at(field).is_some_and(is_ip);
        let has_private = is_address("privateIp") && asked("subnetId").is_some();
        let zone = at("availabilityZone").or_else(|| asked("availabilityZone"));
        let in_zone = |zone: &str| self.home_zones().iter().all(|home| *home == zone);
        Machine {
            ids: at("id").map(str::to_owned).into_iter().collect(),
            fits: self.is_of_provider_aws()
                && asked("instanceType") == self.types().first().copied()
                && zone.is_none_or(in_zone)
                && (!self.has_home() || asked("userData").is_some_and(mounts_home)),
            serves: state == Some("running")
                && at("id").is_some()
                && (is_address("publicIp") || has_private),
            in_order: is_well(instance)
                && condition(instance, "LastAsyncOperation") != Some("False"),
            stopped: matches!(state, Some("stopping" | "stopped")) && at("id").is_some(),
            unreadable: false,
            is_deleting: is_deleting(instance),
        }
    }

    fn pool(&self, pool: &Value) -> Machine {
        let instances = pool.pointer("/status/atProvider/instances");
        let all = || instances.and_then(Value::as_array).into_iter().flatten();
        let has_subnets = pool.pointer("/spec/forProvider/subnetIds").is_some();
        let is = |instance: &Value, states: &[&str]| {
            text(instance, "/state").is_some_and(|state| states.contains(&state))
        };
        let has_address = |instance: &Value| {
            let has = |field: &str| text(instance, &format!("/{field}")).is_some_and(is_ip);
            has("publicIp") || (has_subnets && has("privateIp"))
        };
        let fits = |instance: &Value| {
            let type_ = text(instance, "/instanceType").unwrap_or_default();
            let is_spot = text(instance, "/capacityType") == Some("Spot");
            let market_fits = match self.market() {
                "Spot" => is_spot,
                "OnDemand" => text(instance, "/capacityType") == Some("OnDemand"),
                _ => true,
            };
            self.types().contains(&type_) && market_fits
        };
        Machine {
            ids: all()
                .filter_map(|i| text(i, "/id"))
                .map(str::to_owned)
                .collect(),
            // EC2 attaches a home to an instance of its own pool only. So the claim keeps this
            // pool after a change of types.
            fits: !self.is_of_provider_aws()
                && (pool.pointer("/spec/forProvider/home").is_some()
                    || all().filter(|i| is(i, &["pending", "running"])).all(fits)),
            serves: all().any(|i| is(i, &["running"]) && has_address(i)),
            in_order: is_well(pool),
            stopped: all().any(|i| is(i, &["stopping", "stopped"])),
            is_deleting: is_deleting(pool),
            unreadable: !is_pool(pool),
        }
    }

    /// The instance ids of the attachments that Crossplane observed or fetched. A fetched
    /// attachment may be one that is being deleted.
    pub fn attached_to(&self) -> Vec<&str> {
        let leaving = self.required.get("attachments").into_iter().flatten();
        let observed = self.observed.iter();
        let observed = observed.filter(|(key, _)| is_hashed(key, "home-attachment-"));
        observed
            .map(|(_, attachment)| attachment)
            .chain(leaving)
            .filter_map(|a| text(a, "/spec/forProvider/instanceId"))
            .collect()
    }
}

/// Whether this user data makes an instance mount a home at its boot.
fn mounts_home(user_data: &str) -> bool {
    user_data.contains("gpu-workspace-home.service")
}

/// Whether the composition resource name is that of a machine.
pub fn is_compute(key: &str) -> bool {
    key == "pool" || is_hashed(key, "pool-") || is_hashed(key, "instance-")
}

/// Whether the name is the prefix and eight hexadecimal digits.
pub fn is_hashed(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|hash| {
        let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        hash.len() == 8 && hash.chars().all(hex)
    })
}

/// A text that is not empty.
pub fn text<'a>(value: &'a Value, at: &str) -> Option<&'a str> {
    value.pointer(at)?.as_str().filter(|text| !text.is_empty())
}

/// The id under which the provider knows a resource.
pub fn external_name(resource: &Value) -> Option<&str> {
    text(resource, EXTERNAL_NAME)
}

/// The status of the first condition of this type.
pub fn condition<'a>(resource: &'a Value, type_: &str) -> Option<&'a str> {
    let conditions = resource.pointer("/status/conditions")?.as_array()?;
    let of_type = conditions
        .iter()
        .find(|c| c.get("type").and_then(Value::as_str) == Some(type_))?;
    of_type.get("status")?.as_str()
}

/// Ready alone is not enough: it stays True while reconciling fails.
fn is_well(resource: &Value) -> bool {
    condition(resource, "Ready") == Some("True")
        && condition(resource, "Synced") == Some("True")
        && !is_deleting(resource)
}

/// Whether the API server has a deletion timestamp for the resource.
pub fn is_deleting(resource: &Value) -> bool {
    resource.pointer("/metadata/deletionTimestamp").is_some()
}

/// Whether the function can read a pool: it has the shape of the provider's `SpotPools`.
pub fn is_pool(pool: &Value) -> bool {
    let parameters = pool.pointer("/spec/forProvider");
    parameters.is_some_and(|parameters| SpotPoolParameters::deserialize(parameters).is_ok())
        && pool
            .get("status")
            .is_none_or(|status| SpotPoolStatus::deserialize(status).is_ok())
}

/// The networks of a list, as EC2 writes them. Texts that are not networks are left out.
fn networks_at(value: &Value, at: &str) -> Vec<String> {
    let networks = value.pointer(at).and_then(Value::as_array);
    let texts = networks.into_iter().flatten().filter_map(Value::as_str);
    texts.filter_map(network).collect()
}

fn network(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    let mask = u32::MAX
        .checked_shl(32_u32.checked_sub(length)?)
        .unwrap_or(0);
    let network = std::net::Ipv4Addr::from(u32::from(address) & mask);
    Some(format!("{network}/{length}"))
}

/// Whether a text is an IP address. Any other text is no address of a machine.
fn is_ip(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}
