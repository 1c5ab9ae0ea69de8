//! The provider crashes before and after every effect of a pool's life.

use memory_ec2::RECLAIMED;

use super::earth::{At, How, Stop};
use super::ours::Instances as _;
use super::store::Edit;
use super::world::{World, pool, size};

/// Creation, an interruption, a smaller and a larger size, an edit of the group, and deletion.
/// Returns the number of effects.
fn live(stop: Option<Stop>) -> usize {
    let mut world = World::new(pool(2));
    world.earth.lock().stop = stop;
    world.work_for(60);
    let interrupted = {
        let mut earth = world.earth.lock();
        let now = earth.now;
        let id = earth.cloud.live()[0].id.clone();
        earth.cloud.end(&id, RECLAIMED, now);
        id
    };
    world.work_for(60);
    world.edit(Edit::Size(size(1)));
    world.work_for(60);
    world.edit(Edit::Size(size(3)));
    world.edit(Edit::SshCidrs(vec!["198.51.100.0/24".into()]));
    world.work_for(60);
    let context = format!("{stop:?}, {interrupted} was interrupted");
    world
        .settle()
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    world.edit(Edit::Delete);
    world
        .settle()
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let earth = world.earth.lock();
    assert!(
        earth.violations.is_empty(),
        "{context}: {:?}",
        earth.violations
    );
    earth.all_effects
}

#[test]
fn a_crash_before_or_after_any_effect_leaks_and_doubles_nothing() {
    let effects = live(None);
    assert!(effects > 30, "{effects} effects make no life");
    for number in 0..effects {
        for how in [How::DiesBefore, How::DiesAfter] {
            let at = At::OfAll(number);
            live(Some(Stop { at, how }));
        }
    }
}
