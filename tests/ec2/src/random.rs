//! Random numbers from a seed.

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
/// The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next random number.
    #[allow(
        clippy::should_implement_trait,
        reason = "dice never end, so an iterator's Option says nothing"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number from 0 to `bound`, without `bound` itself.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Whether a random event with this probability in percent happens.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A random element. The slice must not be empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = self.below(of.len() as u64);
        &of[usize::try_from(index).unwrap_or_default()]
    }
}
