//! Launches that EC2 accepts, and whose instances it ends before they run.

use api::condition::LAUNCHED;

use super::ours::Instances as _;
use super::world::{World, pool};

/// What EC2 says, the reason of the condition, and what a person reads in its message.
const CAUSES: [(&str, &str, &str, &str); 4] = [
    (
        "Client.InternalError",
        "Client.InternalError: Client error on launch",
        "Configuration",
        "the account's key for volumes",
    ),
    (
        "Client.VolumeLimitExceeded",
        "Client.VolumeLimitExceeded: Volume limit exceeded",
        "Quota",
        "raise the quotas for gp3 volumes",
    ),
    (
        "Server.InternalError",
        "Server.InternalError: Internal error on launch",
        "Transient",
        "Internal error on launch",
    ),
    (
        "Client.InvalidSnapshot.NotFound",
        "Client.InvalidSnapshot.NotFound: The snapshot does not exist",
        "Configuration",
        "The snapshot does not exist",
    ),
];

#[test]
fn a_launch_that_dies_at_birth_is_a_refusal_and_is_repeated_ever_more_slowly() {
    for (code, said, reason, advice) in CAUSES {
        let mut world = World::new(pool(1));
        world.earth.lock().faults.dies_at_birth = Some((code, said));
        world.work_for(3600);
        let launched = world.condition(LAUNCHED);
        assert_eq!(launched.reason, reason, "{code}");
        for part in [code, advice] {
            assert!(launched.message.contains(part), "{}", launched.message);
        }
        let born = world.earth.lock().cloud.machines.len();
        assert!(born <= 20, "{code}: {born} launches in an hour");
        assert_eq!(world.events("Interrupted"), [""; 0], "{code}");
        world.settle().unwrap();
        assert_eq!(world.earth.lock().cloud.live().len(), 1);
        assert_eq!(world.condition(LAUNCHED).reason, "Launched");
        world.assert_lawful();
    }
}

#[test]
fn a_place_without_capacity_that_ec2_finds_late_is_left_for_another_one() {
    let mut world = World::new(pool(1));
    let late = (
        "Server.InsufficientInstanceCapacity",
        "Server.InsufficientInstanceCapacity: Insufficient capacity to satisfy instance request",
    );
    world.earth.lock().faults.dies_at_birth = Some(late);
    world.work_for(5);
    world.earth.lock().faults.dies_at_birth = None;
    world.work_for(60);
    let earth = world.earth.lock();
    let zones: Vec<&str> = earth
        .cloud
        .machines
        .iter()
        .map(|m| m.offering.zone.as_str())
        .collect();
    assert_eq!(zones, ["us-east-1a", "us-east-1b"]);
    drop(earth);
    world.settle().unwrap();
    world.assert_lawful();
}
