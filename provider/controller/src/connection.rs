//! The content of a pool's connection Secret. Pure.

use api::pool::PoolInstance;
use provider_runtime::connection::Details;

const SSH_PORT: u16 = 22;

/// The details of the running instances, by slot, one line each. `endpoint` is the first one's
/// address. If no instance runs, there are no details.
///
/// The user's name depends on the image, so `ssh` has none.
pub fn details(instances: &[PoolInstance]) -> Details {
    let running = || instances.iter().filter(|i| i.state == "running");
    let lines = |line: &dyn Fn(&PoolInstance) -> Option<String>| {
        let lines: Vec<String> = running().filter_map(line).collect();
        lines.join("\n")
    };
    let endpoint = running().find_map(address).unwrap_or_default();
    let port = if endpoint.is_empty() {
        String::new()
    } else {
        SSH_PORT.to_string()
    };
    [
        ("endpoint", endpoint.to_owned()),
        ("port", port),
        ("addresses", lines(&|i| address(i).map(str::to_owned))),
        ("privateAddresses", lines(&|i| i.private_ip.clone())),
        (
            "ssh",
            lines(&|i| address(i).map(|a| format!("ssh://{a}:{SSH_PORT}"))),
        ),
        ("instanceIds", lines(&|i| Some(i.id.clone()))),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(key, value)| (key.to_owned(), value.into_bytes()))
    .collect()
}

/// The public address, or the private one if there is no public one.
fn address(instance: &PoolInstance) -> Option<&str> {
    let public = instance.public_ip.as_deref();
    public.or(instance.private_ip.as_deref())
}

#[cfg(test)]
mod tests {
    use api::capacity::InstanceCapacityType;

    use super::*;

    fn instance(number: i32, state: &str, public: Option<&str>) -> PoolInstance {
        PoolInstance {
            id: format!("i-{number}"),
            launch: 1,
            generation: None,
            lease: None,
            notice: None,
            scheduled_event: None,
            impaired_since: None,
            missing_since: None,
            why: None,
            instance_type: "g4dn.xlarge".into(),
            zone: "us-east-1a".into(),
            capacity_type: InstanceCapacityType::Spot,
            image_id: "ami-1".into(),
            state: state.into(),
            state_reason: None,
            public_ip: public.map(str::to_owned),
            private_ip: Some(format!("10.0.0.{number}")),
            launched_at: None,
            activity: None,
            hourly_usd: None,
            host_key: None,
            console_host_keys: Vec::new(),
            setup: None,
        }
    }

    fn text(details: &Details, key: &str) -> String {
        String::from_utf8(details[key].clone()).unwrap()
    }

    #[test]
    fn an_application_reaches_every_instance_that_runs_and_no_other() {
        let details = details(&[
            instance(0, "pending", None),
            instance(1, "running", Some("203.0.113.1")),
            instance(2, "running", None),
            instance(3, "shutting-down", Some("203.0.113.3")),
        ]);
        assert_eq!(text(&details, "endpoint"), "203.0.113.1");
        assert_eq!(text(&details, "port"), "22");
        assert_eq!(text(&details, "addresses"), "203.0.113.1\n10.0.0.2");
        assert_eq!(text(&details, "privateAddresses"), "10.0.0.1\n10.0.0.2");
        assert_eq!(
            text(&details, "ssh"),
            "ssh://203.0.113.1:22\nssh://10.0.0.2:22"
        );
        assert_eq!(text(&details, "instanceIds"), "i-1\ni-2");
    }

    #[test]
    fn an_empty_pool_publishes_no_address() {
        assert!(details(&[instance(0, "terminated", Some("203.0.113.1"))]).is_empty());
    }
}
