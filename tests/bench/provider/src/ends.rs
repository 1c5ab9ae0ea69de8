//! The last phase: many pools end in the same minute.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kube::Client;

use crate::Outcome;
use crate::phases::Scene;
use crate::pools;

/// The time from the begin of the phase to the first end. The provider has read all ends by then.
const AHEAD: SignedDuration = SignedDuration::from_mins(1);
/// The time from the first end to the last one, in seconds.
const WITHIN: usize = 60;
/// The longest time from the last end until the last instance has ended.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(200);

/// Gives pools with this many instances together an end each, within one minute. Returns how late
/// each instance ended. An instance that ends early is an error.
pub(crate) async fn measure(
    scene: &Scene,
    client: &Client,
    instances: usize,
) -> Outcome<Vec<Duration>> {
    let names = pools::names(client).await?;
    let live = live(scene);
    let chosen = choose(&live, instances);
    let first = Timestamp::from_second(Timestamp::now().checked_add(AHEAD)?.as_second())?;
    let mut by_pool = BTreeMap::new();
    let mut ends = BTreeMap::new();
    for (number, &(identity, ids)) in chosen.iter().enumerate() {
        let name = names.get(identity);
        let name = name.ok_or_else(|| format!("no pool has the identity {identity}"))?;
        let after = i64::try_from(number * WITHIN / chosen.len())?;
        let end = first.checked_add(SignedDuration::from_secs(after))?;
        by_pool.insert(name.clone(), end);
        ends.extend(ids.iter().map(|id| (id.clone(), end)));
    }
    pools::end_at(client, by_pool).await?;
    if Timestamp::now() >= first {
        return Err(
            "the API server took longer for the ends than the time to the first one".into(),
        );
    }
    eprintln!(
        "{} instances of {} pools end from {first} on",
        ends.len(),
        chosen.len()
    );
    let ended = await_ends(scene, &ends, first).await?;
    let late = ends.iter().map(|(id, end)| {
        let late = ended[id].duration_since(*end);
        Duration::try_from(late).map_err(|_| format!("{id} ended {late} from its time").into())
    });
    late.collect()
}

/// The live instances that EC2 does not take back, by their pool's identity.
fn live(scene: &Scene) -> BTreeMap<String, BTreeSet<String>> {
    let state = scene.account.lock();
    let mut live: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let machines = state.cloud.machines.iter();
    for machine in machines.filter(|m| m.is_live() && m.ends_at.is_none()) {
        if let Some(identity) = machine.tags.get(api::tags::POOL_UID) {
            let ids = live.entry(identity.clone()).or_default();
            ids.insert(machine.id.clone());
        }
    }
    live
}

/// Pools in the order of their identity, until they have so many instances.
fn choose(
    live: &BTreeMap<String, BTreeSet<String>>,
    instances: usize,
) -> Vec<(&String, &BTreeSet<String>)> {
    let mut left = instances;
    let mut chosen = Vec::new();
    for (identity, ids) in live {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(ids.len());
        chosen.push((identity, ids));
    }
    chosen
}

/// When each instance ended, once all have.
async fn await_ends(
    scene: &Scene,
    ends: &BTreeMap<String, Timestamp>,
    first: Timestamp,
) -> Outcome<BTreeMap<String, Timestamp>> {
    let ahead = Duration::try_from(first.duration_since(Timestamp::now())).unwrap_or_default();
    let within = Duration::from_secs(u64::try_from(WITHIN)?);
    let deadline = Instant::now() + ahead + within + PATIENCE;
    loop {
        let ended = ended(scene, ends);
        let left = ends.len() - ended.len();
        if left == 0 {
            return Ok(ended);
        }
        if Instant::now() > deadline {
            return Err(
                format!("{left} instances still run {PATIENCE:?} after the last end").into(),
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn ended(scene: &Scene, ends: &BTreeMap<String, Timestamp>) -> BTreeMap<String, Timestamp> {
    let state = scene.account.lock();
    let machines = state.cloud.machines.iter();
    let ended = machines.filter(|machine| ends.contains_key(&machine.id));
    ended
        .filter_map(|machine| Some((machine.id.clone(), machine.ended.as_ref()?.at)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_chosen_until_they_have_enough_instances() {
        let ids = |names: &[&str]| names.iter().map(|id| (*id).to_owned()).collect();
        let live = BTreeMap::from([
            ("a".to_owned(), ids(&["i-1", "i-2"])),
            ("b".to_owned(), ids(&["i-3", "i-4"])),
            ("c".to_owned(), ids(&["i-5"])),
        ]);
        let chosen = |number| choose(&live, number).len();
        assert_eq!([0, 1, 2, 3, 4, 9].map(chosen), [0, 1, 1, 2, 2, 3]);
    }
}
