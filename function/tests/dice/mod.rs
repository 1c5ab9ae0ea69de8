//! Dice with a seed: equal seeds give equal throws.
#![allow(dead_code, reason = "every test binary uses its own part")]

/// Seeded dice.
#[derive(Clone)]
pub struct Dice(fastrand::Rng);

impl Dice {
    /// The dice of a seed.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// From 0 to `bound`, exclusive; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound.max(1))
    }

    /// True in this many of 100 throws.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of the items, or `None` without items.
    pub fn any<T: Clone>(&mut self, of: impl IntoIterator<Item = T>) -> Option<T> {
        let all: Vec<T> = of.into_iter().collect();
        (!all.is_empty()).then(|| self.pick(&all).clone())
    }
}
