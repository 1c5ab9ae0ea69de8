//! Home volumes that EC2 accepts at first and then deletes itself.

use api::home::HomeOnDelete;

use super::homes::{content, lose, no_capacity_in, ready, settled, with_home, zone_of};
use super::storage;
use super::world::World;

#[test]
fn a_home_that_ec2_takes_back_is_asked_for_again_and_says_why() {
    let mut world = World::new(with_home(HomeOnDelete::Retain, false));
    world.earth.lock().faults.takes_volumes_back = true;
    world.work_for(3600);
    let said = ready(&world);
    for part in ["VolumeTakenBack", "the account's key for volumes"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("put it in again"), "{said}");
    let made = world.earth.lock().cloud.storage.disks.len();
    assert!((2..=10).contains(&made), "{made} volumes in an hour");
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0"]);
}

#[test]
fn an_administrator_learns_within_minutes_that_ec2_takes_volumes_back() {
    let mut world = World::new(with_home(HomeOnDelete::Retain, false));
    world.earth.lock().faults.takes_volumes_back = true;
    world.work_for(180);
    let said = ready(&world);
    assert!(said.contains("VolumeTakenBack"), "{said}");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_move_whose_copy_ec2_takes_back_returns_to_the_files() {
    let mut world = settled(true);
    let zone = zone_of(&world, "i-0");
    no_capacity_in(&world, &zone);
    world.earth.lock().faults.takes_volumes_back = true;
    lose(&world, "i-0");
    for _ in 0..60 {
        world.work_for(60);
        let said = ready(&world);
        assert!(!said.contains("put it in again"), "{said}");
        let first = storage::homes(&world.earth.lock()).any(|disk| disk.id == "vol-0");
        assert!(first, "the files are gone");
    }
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(content(&world)[0], "i-0");
}
