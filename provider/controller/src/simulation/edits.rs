//! Random edits that users make to a pool's spec.

use api::capacity::CapacityType;
use api::duration::Duration;
use api::home::HomeOnDelete;
use api::home::PoolHome;
use api::pool::{
    PoolFallback, PoolRebalance, PoolReplace, PoolSize, PoolSpread, PoolTypePreference,
};
use memory_ec2::SplitMix64;

use super::luck::{GONE_IMAGE, GOOD_IMAGE, OTHER_IMAGE};
use super::store::Edit;
use super::world::size;

/// One edit, for a pool with or without a home. Once the pool is being deleted, no edit changes
/// what happens to its home: a home that was deleted under one policy cannot be kept under the next
/// one.
pub fn edit(home: Option<&PoolHome>, is_leaving: bool, dice: &mut SplitMix64) -> Edit {
    match (any(dice), home) {
        (Edit::Size(size), Some(_)) => Edit::Size(of_one(size)),
        (Edit::SshCidrs(_), Some(home)) => Edit::Home(changed(home, is_leaving, dice)),
        (edit, _) => edit,
    }
}

/// Limits a size to one instance, because a volume is attached to one instance.
fn of_one(size: PoolSize) -> PoolSize {
    PoolSize {
        minimum: size.minimum.min(1),
        maximum: size.maximum.min(1),
        idle: size.idle.min(1),
    }
}

/// An edit of an existing home. Its size never shrinks.
fn changed(home: &PoolHome, is_leaving: bool, dice: &mut SplitMix64) -> PoolHome {
    let mut home = home.clone();
    match dice.below(if is_leaving { 2 } else { 3 }) {
        0 => home.size_gib += 5,
        1 => home.moves = !home.moves,
        _ => {
            home.on_delete = *dice.pick(&[
                HomeOnDelete::Retain,
                HomeOnDelete::Delete,
                HomeOnDelete::Snapshot,
            ]);
        }
    }
    home
}

fn any(dice: &mut SplitMix64) -> Edit {
    let text = |word: &str| word.to_owned();
    match dice.below(20) {
        0..=6 => Edit::Size(size(i32::try_from(dice.below(5)).unwrap())),
        7..=8 => {
            let maximum = dice.below(5);
            let [minimum, idle] = [dice.below(maximum + 1), dice.below(3)];
            let [minimum, maximum, idle] =
                [minimum, maximum, idle].map(|n| i32::try_from(n).unwrap());
            Edit::Size(PoolSize {
                minimum,
                maximum,
                idle,
            })
        }
        9..=11 => Edit::UserData(format!("#cloud-config\n# {}", dice.below(1000))),
        12 => Edit::SshCidrs(vec![]),
        13 => Edit::SshCidrs(vec![text("198.51.100.0/24"), text("203.0.113.0/24")]),
        14 => Edit::Types(vec![text("g4dn.xlarge"), text("g5.xlarge")]),
        15 => Edit::Types(vec![text("g5.xlarge")]),
        16 => Edit::Zones(Some(vec![
            (*dice.pick(&["us-east-1a", "us-east-1b"])).into(),
        ])),
        17 => Edit::Market(*dice.pick(&[
            CapacityType::Spot,
            CapacityType::SpotWithFallback,
            CapacityType::OnDemand,
        ])),
        18 if dice.percent(60) => policy(dice),
        18 => Edit::Image(dice.pick::<&str>(&[GONE_IMAGE, OTHER_IMAGE])),
        _ if dice.percent(20) => Edit::Delete,
        _ => Edit::Image(GOOD_IMAGE),
    }
}

/// An edit of the pool's policies.
fn policy(dice: &mut SplitMix64) -> Edit {
    match dice.below(6) {
        4 => Edit::EndsIn(Some(i64::try_from(dice.below(1800)).unwrap())),
        5 => Edit::EndsIn(None),
        0 => Edit::Preference(*dice.pick(&[PoolTypePreference::Ordered, PoolTypePreference::Any])),
        1 => Edit::Spread(PoolSpread {
            zones: dice.percent(50),
            // Two zones of one type have enough room for every size.
            max_per_offering: dice.percent(30).then_some(2),
        }),
        2 => Edit::Fallback(PoolFallback {
            after: Some(Duration::of_seconds(*dice.pick(&[0, 300]))),
            return_after: dice.percent(50).then(|| Duration::of_seconds(600)),
        }),
        _ => Edit::Replace(PoolReplace {
            drifted: dice.percent(60),
            not_set_up: dice.percent(60),
            other_image: dice.percent(30),
            impaired: dice.percent(60),
            rebalance: *dice.pick(&[
                PoolRebalance::Ignore,
                PoolRebalance::Cordon,
                PoolRebalance::ReplaceFirst,
            ]),
            at_once: Some(i32::try_from(1 + dice.below(2)).unwrap()),
        }),
    }
}
