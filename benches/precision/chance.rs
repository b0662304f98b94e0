//! Chance that is the same on every machine and in every run. What is drawn with it lives elsewhere.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to, not including, 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `from` up to, not including, `to`.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        from + (self.share() * (to - from) as f64) as i64
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.share() < probability
    }

    /// How many come when `mean` are expected, each by itself.
    pub fn arrivals(&mut self, mean: f64) -> u64 {
        let (limit, mut product, mut n) = ((-mean).exp(), self.share(), 0);
        while product > limit {
            product *= self.share();
            n += 1;
        }
        n
    }
}
