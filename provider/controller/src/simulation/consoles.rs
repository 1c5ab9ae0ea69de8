//! The consoles of new instances, on which the setup reports.

use api::pool::{PoolInstance, PoolSetupState, SpotPool};
use futures::FutureExt as _;
use kube::runtime::reflector::ObjectRef;

use super::ours::{Instances as _, POOL_UID};
use super::provider::Provider;
use super::world::{World, pool};
use crate::console_reader;

const FAILED: &str =
    "gpu-workspace setup FAILED: install OpenCV (exit 1), see /var/log/setup.log\n";
const DONE: &str = "gpu-workspace setup done\n";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

fn with_console() -> SpotPool {
    let mut pool = pool(1);
    pool.spec.for_provider.read_console = true;
    pool
}

fn write(world: &World, text: &str) {
    let mut earth = world.earth.lock();
    let console = &mut earth.cloud.machine("i-0").console;
    console.extend_from_slice(text.as_bytes());
}

/// Reads every console whose time has come. Returns whether that wakes the pool.
fn read(world: &mut World) -> bool {
    let current = world.earth.lock().store.current().clone();
    let region = world.provider.region();
    region.register(POOL_UID, ObjectRef::from_obj(&current));
    let now = world.earth.lock().now;
    let read = console_reader::read_next(region, now)
        .now_or_never()
        .unwrap();
    world.turn();
    read.is_some()
}

fn calls(world: &World) -> usize {
    world.earth.lock().calls_of("GetConsoleOutput")
}

fn shown(world: &World) -> PoolInstance {
    world.observation().instances.remove(0)
}

fn state(world: &World) -> Option<PoolSetupState> {
    shown(world).setup.map(|setup| setup.state)
}

#[test]
fn a_setup_that_fails_and_is_mended_is_in_the_status() {
    let mut world = World::new(with_console());
    world.settle().unwrap();
    world.work_for(60);
    assert_eq!(state(&world), Some(PoolSetupState::SettingUp));

    let keys = format!(
        "-----BEGIN SSH HOST KEY KEYS-----\n{KEY} root@host\n-----END SSH HOST KEY KEYS-----\n"
    );
    write(&world, &keys);
    assert!(read(&mut world));
    assert_eq!(shown(&world).console_host_keys, [KEY]);
    assert_eq!(state(&world), Some(PoolSetupState::SettingUp));

    write(&world, FAILED);
    assert!(!read(&mut world), "once a minute is enough");
    world.wait(60);
    assert!(read(&mut world));
    let step = "install OpenCV (exit 1), see /var/log/setup.log";
    assert_eq!(shown(&world).setup.unwrap().message.as_deref(), Some(step));
    assert_eq!(state(&world), Some(PoolSetupState::Failed));

    write(&world, DONE);
    world.wait(60);
    assert!(read(&mut world));
    assert_eq!(state(&world), Some(PoolSetupState::Ready));
    let before = calls(&world);
    world.wait(60);
    assert!(!read(&mut world));
    assert_eq!(calls(&world), before, "a pool at rest costs no call");
    world.assert_lawful();
}

#[test]
fn a_silent_console_is_doubted_after_fifteen_minutes_and_read_for_an_hour() {
    let mut world = World::new(with_console());
    world.settle().unwrap();
    for _ in 0..14 {
        world.wait(60);
        read(&mut world);
    }
    assert_eq!(state(&world), Some(PoolSetupState::SettingUp));
    // The pool is reconciled at that moment without any other event.
    world.work_for(120);
    assert_eq!(state(&world), Some(PoolSetupState::Unknown));
    let before = calls(&world);
    for _ in 0..90 {
        world.wait(60);
        read(&mut world);
    }
    assert!(
        (8..=10).contains(&(calls(&world) - before)),
        "every five minutes"
    );
    assert_eq!(state(&world), Some(PoolSetupState::Unknown));
}

#[test]
fn a_restarted_provider_keeps_what_a_console_said() {
    let mut world = World::new(with_console());
    world.settle().unwrap();
    write(&world, FAILED);
    world.wait(60);
    assert!(read(&mut world));
    world.provider = Provider::new(&world.earth);
    world.turn();
    assert_eq!(state(&world), Some(PoolSetupState::Failed));
}

#[test]
fn a_pool_that_does_not_ask_for_it_reads_no_console() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.wait(60);
    assert!(!read(&mut world));
    assert_eq!((calls(&world), state(&world)), (0, None));
}
