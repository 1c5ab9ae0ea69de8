//! A schedule: first random events, then a time without events.

use super::engine::Engine;
use super::rest::{self, Rest};
use super::world::World;
use super::{departure, luck, world};
use crate::dice::Dice;

/// Runs a seed's schedule with this many steps. Returns how the workspace came to rest, or the
/// failure. With `is_logged`, a failure comes with the log.
pub fn run(
    seed: u64,
    steps: usize,
    engine: &mut impl Engine,
    is_logged: bool,
) -> Result<Rest, (String, Vec<String>)> {
    let parameters = luck::parameters(&mut Dice::new(seed));
    let mut world = world::World::new(seed, parameters, is_logged);
    let outcome = play(&mut world, steps, engine);
    outcome.map_err(|what| (what, world.log.take().unwrap_or_default()))
}

fn play(world: &mut World, steps: usize, engine: &mut impl Engine) -> Result<Rest, String> {
    let claim = world.xr.parameters.clone();
    world.note(|| format!("the claim asks for {claim}"));
    for step in 0..steps {
        luck::step(world, engine)?;
        let summary = world.log.is_some().then(|| world.summary());
        world.note(|| format!("step {step}\n{}", summary.unwrap_or_default()));
        lawful(world)?;
    }
    luck::mend(world);
    let mut rest = rest::settle(world, engine);
    if rest.is_ok() && luck::start_stopped(world) {
        world.note(|| "what is stopped is started".to_owned());
        rest = rest::settle(world, engine);
    }
    let summary = world.log.is_some().then(|| world.summary());
    world.note(|| format!("at rest\n{}", summary.unwrap_or_default()));
    lawful(world)?;
    let rest = rest?;
    rest::check(world)?;
    departure::delete(world)?;
    lawful(world)?;
    Ok(rest)
}

fn lawful(world: &World) -> Result<(), String> {
    if world.violations.is_empty() {
        Ok(())
    } else {
        Err(world.violations.join("; "))
    }
}
