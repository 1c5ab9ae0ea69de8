//! The launches that a pool needs to reach its target.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::census::Census;
use super::{Action, Plan, Wait};
use crate::{Desired, Launch, Market, Observed, Offering, TypePreference};

/// The input for new launches.
pub(super) struct Source<'a> {
    pub(super) desired: &'a Desired,
    pub(super) observed: &'a Observed,
    pub(super) census: &'a Census<'a>,
    pub(super) generation: String,
    pub(super) now: Timestamp,
}

/// A market's offerings that may be asked for now, each with the number of instances that it may
/// still get.
type Candidates<'a> = Vec<(&'a Offering, u32)>;

impl Source<'_> {
    /// Plans launches of `missing` instances, or the wait that delays them.
    pub(super) fn fill(&self, missing: u32, plan: &mut Plan) {
        plan.spot_short_since = self.observed.spot_short_since;
        let spot = self.candidates(Market::Spot);
        let (candidates, market) = if spot.is_empty() {
            (self.candidates(Market::OnDemand), Market::OnDemand)
        } else {
            (spot, Market::Spot)
        };
        if candidates.is_empty() {
            plan.waits.push(self.lack());
        }
        let falls_back = market == Market::OnDemand && self.sells(Market::Spot);
        if falls_back {
            let since = self.observed.spot_short_since.unwrap_or(self.now);
            plan.spot_short_since = Some(since);
            let until = since.saturating_add(self.desired.fallback_after);
            let until = until.unwrap_or(Timestamp::MAX);
            if until > self.now && !candidates.is_empty() {
                plan.waits.push(Wait::Fallback { until });
                return;
            }
        }
        self.launch(candidates, missing, plan);
    }

    /// Plans launches of replacements. They are spot instances; they are on-demand instances if no
    /// spot offering is available and `spot_only` is false.
    pub(super) fn replace(&self, number: u32, spot_only: bool, plan: &mut Plan) {
        let spot = self.candidates(Market::Spot);
        let candidates = if spot.is_empty() && !spot_only {
            self.candidates(Market::OnDemand)
        } else {
            spot
        };
        self.launch(candidates, number, plan);
    }

    /// Whether any offering may be asked for now.
    pub(super) fn has_candidates(&self, spot_only: bool) -> bool {
        !self.candidates(Market::Spot).is_empty()
            || (!spot_only && !self.candidates(Market::OnDemand).is_empty())
    }

    fn sells(&self, market: Market) -> bool {
        self.desired.offerings.iter().any(|o| o.market == market)
    }

    fn candidates(&self, market: Market) -> Candidates<'_> {
        let offerings = self.desired.offerings.iter();
        let warm = offerings
            .filter(|o| o.market == market && self.observed.unavailable.at(o, self.now).is_none())
            .map(|o| (o, self.room(o)));
        let mut candidates: Candidates<'_> = warm.filter(|(_, room)| *room > 0).collect();
        let down = self.observed.zones_down.as_ref();
        let is_up = |offering: &Offering| !down.is_some_and(|down| down.contains(&offering.zone));
        if candidates.iter().any(|(offering, _)| is_up(offering)) {
            candidates.retain(|(offering, _)| is_up(offering));
        }
        candidates
    }

    /// How many more instances of an offering the spread allows.
    fn room(&self, offering: &Offering) -> u32 {
        let Some(most) = self.desired.spread.per_offering else {
            return u32::MAX;
        };
        let is_same =
            |o: &Offering| (&o.instance_type, &o.zone) == (&offering.instance_type, &offering.zone);
        most.saturating_sub(self.census.population(is_same))
    }

    /// The reason why there is no candidate: all offerings are unavailable, or have as many
    /// instances as the spread allows.
    fn lack(&self) -> Wait {
        let resting = self
            .observed
            .unavailable
            .among(&self.desired.offerings, self.now);
        match resting.map(|(_, unavailable)| unavailable.until).min() {
            Some(until) => Wait::Capacity { until },
            None => Wait::Spread,
        }
    }

    fn launch(&self, candidates: Candidates<'_>, number: u32, plan: &mut Plan) {
        let mut preferred = self.preferred(candidates);
        if self.asks_one_zone() {
            self.keep_one_zone(&mut preferred);
        }
        let shares = if self.desired.spread.zones {
            self.by_zone(preferred, number)
        } else {
            vec![(preferred, number)]
        };
        let used = plan.actions.iter().filter_map(|action| match action {
            Action::Launch(launch) => Some(launch.launch),
            _ => None,
        });
        let highest = used.chain([self.observed.launch_generation]).max();
        let numbers = highest.unwrap_or(0) + 1..;
        let shares = shares.into_iter().map(|(candidates, number)| {
            // AWS may take all instances from one offering.
            let room = candidates.iter().map(|(_, room)| *room).min();
            (candidates, number.min(room.unwrap_or(0)))
        });
        let launches = numbers.zip(shares.filter(|(_, count)| *count > 0));
        plan.actions
            .extend(launches.map(|(launch, (candidates, count))| {
                Action::Launch(Launch {
                    launch,
                    count,
                    generation: self.generation.clone(),
                    offerings: candidates.into_iter().map(|(o, _)| o.clone()).collect(),
                    decided_at: self.now,
                    failures: 0,
                    answer: None,
                })
            }));
    }

    /// The candidates of the type that the planner asks for first.
    fn preferred<'b>(&self, mut candidates: Candidates<'b>) -> Candidates<'b> {
        if self.desired.preference == TypePreference::Ordered
            && let Some((first, _)) = candidates.first().copied()
        {
            candidates.retain(|(o, _)| o.instance_type == first.instance_type);
        }
        candidates
    }

    /// Whether a launch names one zone only. While a zone is down, EC2 may fail a launch that names
    /// several, because it compares its token in all of them ("Ensuring idempotency in Amazon EC2
    /// API requests" in the Amazon EC2 Developer Guide).
    fn asks_one_zone(&self) -> bool {
        self.observed.zones_down.is_some() || self.observed.launch_failures > 0
    }

    /// Keeps the candidates of one zone. Each further launch gets another zone.
    fn keep_one_zone(&self, candidates: &mut Candidates<'_>) {
        let zones: BTreeSet<&str> = candidates.iter().map(|(o, _)| o.zone.as_str()).collect();
        let turns = u64::try_from(zones.len()).unwrap_or(1).max(1);
        let turn = usize::try_from(self.observed.launch_generation % turns).unwrap_or_default();
        if let Some(zone) = zones.into_iter().nth(turn).map(str::to_owned) {
            candidates.retain(|(offering, _)| offering.zone == zone);
        }
    }

    /// Divides `number` among the zones so that they hold equal numbers of instances.
    fn by_zone<'b>(&self, candidates: Candidates<'b>, number: u32) -> Vec<(Candidates<'b>, u32)> {
        let mut zones: BTreeMap<&str, (u32, u32, Candidates<'b>)> = BTreeMap::new();
        for (offering, room) in candidates {
            let there = || self.census.population(|o| o.zone == offering.zone);
            let zone = zones.entry(&offering.zone);
            let (_, _, of_zone) = zone.or_insert_with(|| (there(), 0, Vec::new()));
            of_zone.push((offering, room));
        }
        for _ in 0..number {
            let emptiest = zones
                .values_mut()
                .min_by_key(|(there, more, _)| there + *more);
            if let Some((_, more, _)) = emptiest {
                *more += 1;
            }
        }
        let shares = zones.into_values();
        shares.map(|(_, more, of_zone)| (of_zone, more)).collect()
    }
}
