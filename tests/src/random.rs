//! Random choices that a seed repeats.

/// A generator (`SplitMix64`, public domain, by Sebastiano Vigna): the same seed gives the same choices
/// on every machine and with every version of every crate.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another generator that depends on this one's state and a name: what it gives does not change
    /// when more is drawn from this one.
    #[must_use]
    pub fn fork(&self, name: &str) -> Self {
        let mut fork = Self(self.0);
        for byte in name.bytes() {
            fork.0 = fork.bits() ^ u64::from(byte);
        }
        fork
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.bits() % u64::try_from(n.max(1)).unwrap()).unwrap()
    }

    /// A number of a range, its ends included.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        let width = u64::try_from(to - from).unwrap() + 1;
        from + i64::try_from(self.bits() % width).unwrap()
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these; panics where there is none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Any order of these.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_numbers() {
        // The reference implementation's first outputs for the seed 1234567.
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn ranges_include_their_ends_and_forks_differ() {
        let mut random = Random::new(7);
        let mut seen: Vec<i64> = (0..200).map(|_| random.between(-2, 2)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [-2, -1, 0, 1, 2]);
        assert_ne!(random.fork("a").bits(), random.fork("b").bits());
        assert_eq!(random.fork("a").bits(), random.fork("a").bits());
    }
}
