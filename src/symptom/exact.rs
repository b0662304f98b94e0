//! Exact fractions: an objective is a decimal, and a window is over its threshold or not, never by a rounding error.

use std::cmp::Ordering;

/// A fraction of whole numbers in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Above the line.
    pub num: u128,
    /// Below the line, never 0.
    pub den: u128,
}

/// Digits that a decimal may have: what is computed from two of them stays within `u128`.
const DIGITS_MAX: usize = 15;

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self { num: 0, den: 1 };
    /// One.
    pub const ONE: Self = Self { num: 1, den: 1 };

    /// A fraction in lowest terms; none when `den` is 0.
    pub fn new(num: u128, den: u128) -> Option<Self> {
        if den == 0 {
            return None;
        }
        let shared = gcd(num, den).max(1);
        Some(Self { num: num / shared, den: den / shared })
    }

    /// Reads `14.4`, `0.995` or `14/15`; none for what is neither, or has more than 15 digits.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().split_once('/') {
            Some((num, den)) => Self::new(whole(num)?, whole(den)?),
            None => decimal(text.trim()),
        }
    }

    /// What is left of one; none when it is more than one.
    pub fn complement(self) -> Option<Self> {
        Self::new(self.den.checked_sub(self.num)?, self.den)
    }

    /// The product; none when it is too large.
    pub fn times(self, other: Self) -> Option<Self> {
        let (a, b) = (Self::new(self.num, other.den)?, Self::new(other.num, self.den)?);
        Self::new(a.num.checked_mul(b.num)?, a.den.checked_mul(b.den)?)
    }

    /// The quotient; none when it is too large or `other` is 0.
    pub fn over(self, other: Self) -> Option<Self> {
        self.times(Self::new(other.den, other.num)?)
    }

    /// How it compares, exactly.
    pub fn compare(self, other: Self) -> Ordering {
        wide(self.num, other.den).cmp(&wide(other.num, self.den))
    }

    /// The larger one.
    pub fn or_more(self, other: Self) -> Self {
        if self.compare(other) == Ordering::Less { other } else { self }
    }

    /// For words only, never for a decision.
    #[expect(clippy::cast_precision_loss, reason = "read by people, to two digits")]
    pub fn to_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

impl From<u64> for Ratio {
    fn from(whole: u64) -> Self {
        Self { num: u128::from(whole), den: 1 }
    }
}

fn whole(text: &str) -> Option<u128> {
    let text = text.trim();
    let is_digits = !text.is_empty() && text.len() <= DIGITS_MAX && text.bytes().all(|b| b.is_ascii_digit());
    if is_digits { text.parse().ok() } else { None }
}

fn decimal(text: &str) -> Option<Ratio> {
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (before, after) = text.split_once('.').unwrap_or((text, ""));
    let after = after.trim_end_matches('0');
    let before = if before.is_empty() { "0" } else { before };
    let scale = 10u128.checked_pow(u32::try_from(after.len()).ok()?)?;
    let digits = format!("{}{after}", before.trim_start_matches('0'));
    Ratio::new(if digits.is_empty() { 0 } else { whole(&digits)? }, scale)
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The whole product, upper and lower half: comparing two of them can't overflow.
fn wide(a: u128, b: u128) -> (u128, u128) {
    const HALF: u32 = 64;
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> HALF, a & LOW, b >> HALF, b & LOW);
    let (high, low, cross, other) = (a1 * b1, a0 * b0, a1 * b0, a0 * b1);
    let middle = (low >> HALF) + (cross & LOW) + (other & LOW);
    (high + (cross >> HALF) + (other >> HALF) + (middle >> HALF), (middle << HALF) | (low & LOW))
}

/// Whether `bad` of `whole` is more than `threshold`, strictly: exactly the threshold is not over. Fractions so fine that
/// they don't fit are not over: nobody asks for an objective of 30 digits.
pub fn is_over(bad: u64, threshold: Ratio, whole: Ratio) -> bool {
    match threshold.den.checked_mul(whole.den) {
        Some(scale) => wide(u128::from(bad), scale) > wide(threshold.num, whole.num),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(text: &str) -> Ratio {
        Ratio::parse(text).unwrap()
    }

    #[test]
    fn a_decimal_keeps_all_its_digits() {
        assert_eq!(ratio("0.999"), Ratio { num: 999, den: 1000 });
        assert_eq!(ratio("14.4"), Ratio { num: 72, den: 5 });
        assert_eq!(ratio("14.40"), ratio("14.4"));
        assert_eq!(ratio("7/30"), Ratio { num: 7, den: 30 });
        assert_eq!(ratio(".5"), ratio("0.5"));
        assert_eq!(ratio("0"), Ratio::ZERO);
        for bad in ["", "x", "1e3", "-1", "1/0", "1.2.3", "1234567890123456789"] {
            assert_eq!(Ratio::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn exactly_the_threshold_is_not_over() {
        let theta = |burn: &str, slo: &str| ratio(burn).times(ratio(slo).complement().unwrap()).unwrap();
        assert!(!is_over(518_400, theta("14.4", "0.999"), Ratio::from(36_000_000)));
        assert!(is_over(518_401, theta("14.4", "0.999"), Ratio::from(36_000_000)));
        // In floats 1 - 0.9 is less than 0.1.
        assert!(!is_over(1, theta("1", "0.9"), Ratio::from(10)));
    }

    proptest! {
        #[test]
        fn comparing_agrees_with_whole_numbers(a in 0u64.., b in 1u64.., c in 0u64.., d in 1u64..) {
            let exact = (u128::from(a) * u128::from(d)).cmp(&(u128::from(c) * u128::from(b)));
            let one = Ratio::new(a.into(), b.into()).unwrap();
            let other = Ratio::new(c.into(), d.into()).unwrap();
            prop_assert_eq!(one.compare(other), exact);
        }

        #[test]
        fn a_wide_product_divides_back(a in 1u128.., b in 1u128..) {
            let (high, low) = wide(a, b);
            prop_assert_eq!(low, a.wrapping_mul(b));
            prop_assert_eq!(high == 0, a.checked_mul(b).is_some());
        }
    }
}
