//! The consoles of new instances, on which the setup reports.

use api::pool::{PoolInstance, PoolReplace, PoolSetupState, SpotPool};
use futures::FutureExt as _;
use kube::runtime::reflector::ObjectRef;

use super::ours::{Instances as _, POOL_UID};
use super::provider::Provider;
use super::store::Edit;
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
fn an_agent_reports_the_end_of_a_setup_before_the_console_does() {
    let mut world = World::new(with_console());
    world.settle().unwrap();
    let say = |world: &World, value: &str| {
        let mut earth = world.earth.lock();
        let tags = &mut earth.cloud.machine("i-0").tags;
        tags.insert(activity_report::SETUP.into(), value.into());
    };
    say(&world, "<script>");
    world.work_for(60);
    assert_eq!(state(&world), Some(PoolSetupState::SettingUp));
    say(
        &world,
        "FAILED: install OpenCV (exit 1), see /var/log/setup.log",
    );
    world.work_for(60);
    assert_eq!(state(&world), Some(PoolSetupState::Failed));
    say(&world, "done");
    world.work_for(60);
    assert_eq!(state(&world), Some(PoolSetupState::Ready));
    let before = calls(&world);
    world.wait(120);
    assert!(!read(&mut world));
    assert_eq!(calls(&world), before);
}

#[test]
fn a_pool_that_does_not_ask_for_it_reads_no_console() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.wait(60);
    assert!(!read(&mut world));
    assert_eq!((calls(&world), state(&world)), (0, None));
}

/// The console of the only instance shows `line`, then the user data changes. Returns the live
/// instances after that.
fn live_after_an_edit(console: &str) -> Vec<String> {
    let mut pool = with_console();
    pool.spec.for_provider.replace = Some(PoolReplace {
        not_set_up: true,
        ..PoolReplace::default()
    });
    let mut world = World::new(pool);
    world.settle().unwrap();
    write(&world, console);
    world.wait(60);
    assert!(read(&mut world));
    world.edit(Edit::UserData("#cloud-config\n# mended".into()));
    world.settle().unwrap();
    world.assert_lawful();
    let live = world.observation().instances.into_iter();
    let live = live.filter(|instance| instance.state == "running");
    live.map(|instance| instance.id).collect()
}

/// The pool may have one instance only, so the broken one ends before the next one starts.
#[test]
fn a_mend_replaces_an_instance_whose_setup_failed() {
    assert_eq!(live_after_an_edit(FAILED), ["i-1"]);
}

#[test]
fn a_mend_does_not_replace_an_instance_on_which_somebody_works() {
    assert_eq!(live_after_an_edit(DONE), ["i-0"]);
}
