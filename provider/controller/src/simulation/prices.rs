//! Spot prices of running instances.

use super::world::{World, pool};

fn set_price(world: &World, usd: f64) {
    let mut earth = world.earth.lock();
    for kind in ["g4dn.xlarge", "g5.xlarge"] {
        for zone in ["us-east-1a", "us-east-1b"] {
            earth.spot_prices.insert((kind.into(), zone.into()), usd);
        }
    }
}

fn shown(world: &World) -> Option<f64> {
    world.observation().instances.remove(0).hourly_usd
}

fn calls(world: &World) -> usize {
    world.earth.lock().calls_of("DescribeSpotPriceHistory")
}

#[test]
fn an_instance_shows_its_spot_price_for_one_call_an_hour() {
    let mut world = World::new(pool(1));
    set_price(&world, 0.21);
    world.settle().unwrap();
    assert_eq!((shown(&world), calls(&world)), (Some(0.21), 1));
    set_price(&world, 0.25);
    world.work_for(30 * 60);
    assert_eq!((shown(&world), calls(&world)), (Some(0.21), 1));
    world.work_for(40 * 60);
    assert_eq!((shown(&world), calls(&world)), (Some(0.25), 2));
    world.assert_lawful();
}

#[test]
fn a_pool_without_instances_reads_no_prices() {
    let mut world = World::new(pool(0));
    world.settle().unwrap();
    world.work_for(2 * 60 * 60);
    assert_eq!(calls(&world), 0);
}
