//! A strip of counts, one a place, from the oldest that is not empty to the newest: no place says where it is, and all
//! take as many bytes as the largest count needs. Which time a place stands for is said elsewhere.

use std::ops::Range;

/// How many bytes a strip grows by: doubling would waste what narrow counts save.
const GROWTH: usize = 32;

/// Counts in a row, each with a number. The first and the last are never empty.
#[derive(Clone, Debug)]
pub(super) struct Strip {
    /// Bytes that are left behind, then the counts, little-endian.
    bytes: Vec<u8>,
    /// How many bytes are left behind.
    gone: usize,
    /// The sum of all counts.
    total: u64,
    /// The number of the first place.
    first: u32,
    /// Bytes of a count, 1 to 4.
    width: u8,
}

impl Default for Strip {
    fn default() -> Self {
        Self { bytes: Vec::new(), gone: 0, total: 0, first: 0, width: 1 }
    }
}

/// The same counts are the same, however many bytes they take.
impl PartialEq for Strip {
    fn eq(&self, other: &Self) -> bool {
        self.filled(0..self.len()).eq(other.filled(0..other.len()))
    }
}

impl Eq for Strip {}

impl Strip {
    /// How many places it has, empty ones between others too.
    pub fn len(&self) -> usize {
        self.places(self.counts().len())
    }

    /// Whether it has no place.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.gone
    }

    /// The number of the first place; any when it is empty.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Adds `n` to the place of `number`; saturates. The newest `len_max` places are kept: what is older than these is
    /// forgotten, and not taken.
    pub fn add(&mut self, number: u32, n: u32, len_max: usize) {
        let Some(place) = (n > 0).then(|| self.reach(number, len_max)).flatten() else { return };
        let before = self.count(place);
        let sum = before.saturating_add(n);
        self.total += u64::from(sum - before);
        let width = width_of(sum);
        if width > self.width {
            self.repack(width);
        }
        let start = self.gone + place * self.width();
        let count = self.bytes.get_mut(start..start + usize::from(self.width)).unwrap_or_default();
        count.iter_mut().zip(sum.to_le_bytes()).for_each(|(byte, other)| *byte = other);
    }

    /// Takes the oldest away, as (number, count), when its number is below `number`.
    pub fn pop_before(&mut self, number: u32) -> Option<(u32, u32)> {
        if self.is_empty() || self.first >= number {
            return None;
        }
        let popped = (self.first, self.count(0));
        self.total -= u64::from(popped.1);
        let newer = self.counts().get(self.width()..).unwrap_or_default();
        match first_filled(newer).map(|byte| self.places(byte) + 1) {
            Some(places) => {
                self.gone += places * self.width();
                self.first = self.first.saturating_add(u32::try_from(places).unwrap_or(u32::MAX));
            }
            None => {
                self.bytes.clear();
                (self.gone, self.width) = (0, 1);
            }
        }
        Some(popped)
    }

    /// Gives back what is unused, when it is more than what is used: what comes and goes by the hour shall not ask for
    /// room at each turn.
    pub fn shrink(&mut self) {
        if self.bytes.capacity() > 2 * (self.counts().len() + GROWTH) {
            self.close();
            self.bytes.shrink_to(self.bytes.len() + GROWTH);
        }
    }

    /// The sum of some places, and the oldest of them that is not empty. Of most places it is the sum of all less that of
    /// the others.
    pub fn sum(&self, places: Range<usize>) -> (u64, Option<usize>) {
        let (start, end, len) = (places.start, places.end, self.len());
        if start >= end {
            return (0, None);
        }
        if start == 0 && end == len {
            return (self.total, Some(0));
        }
        let n = if end.saturating_sub(start) > len / 2 {
            self.total - self.sum_of(0..start) - self.sum_of(end..len)
        } else {
            self.sum_of(start..end)
        };
        if n == 0 || start == 0 {
            return (n, (n > 0).then_some(0));
        }
        (n, first_filled(self.part(&places)).map(|byte| start + self.places(byte)))
    }

    fn sum_of(&self, places: Range<usize>) -> u64 {
        let counts = self.part(&places);
        match self.width {
            1 => sum_of_bytes(counts),
            2 => sum_of_pairs(counts),
            3 => sum_of_wide::<3>(counts),
            _ => sum_of_wide::<4>(counts),
        }
    }

    /// Those of some places that are not empty as (number, count), newest first.
    pub fn filled(&self, places: Range<usize>) -> impl Iterator<Item = (u32, u32)> {
        let mut left = self.part(&places);
        let mut number = self.first.saturating_add(u32::try_from(places.end).unwrap_or(u32::MAX));
        std::iter::from_fn(move || {
            if left.last() == Some(&0) {
                // Most places of something rare are empty.
                let filled = self.places(last_filled(left)?) + 1;
                number -= u32::try_from(self.places(left.len()) - filled).ok()?;
                left = left.get(..filled * self.width())?;
            }
            let (older, count) = left.split_at_checked(left.len().checked_sub(self.width())?)?;
            left = older;
            number -= 1;
            Some((number, number_of(count)))
        })
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.bytes.capacity()
    }

    fn width(&self) -> usize {
        self.width.into()
    }

    /// How many whole places so many bytes are. By constants, as it is asked at every turn.
    fn places(&self, bytes: usize) -> usize {
        match self.width {
            1 => bytes,
            2 => bytes / 2,
            3 => bytes / 3,
            _ => bytes / 4,
        }
    }

    fn counts(&self) -> &[u8] {
        self.bytes.get(self.gone..).unwrap_or_default()
    }

    fn part(&self, places: &Range<usize>) -> &[u8] {
        self.counts().get(places.start * self.width()..places.end * self.width()).unwrap_or_default()
    }

    fn count(&self, place: usize) -> u32 {
        number_of(self.part(&(place..place + 1)))
    }

    /// The place of `number`, which is made when there is none; none when it is too old for one.
    fn reach(&mut self, number: u32, len_max: usize) -> Option<usize> {
        let oldest = number.saturating_sub(u32::try_from(len_max).unwrap_or(u32::MAX).saturating_sub(1));
        while self.pop_before(oldest).is_some() {}
        if self.is_empty() {
            self.first = number;
        }
        let len = self.len();
        let older = usize::try_from(self.first.saturating_sub(number)).ok()?;
        if older > 0 {
            (older <= len_max.saturating_sub(len)).then(|| self.grow_front(older))?;
            self.first = number;
            return Some(0);
        }
        let place = usize::try_from(number - self.first).ok()?;
        if place >= len {
            self.grow_back(place + 1 - len);
        }
        Some(place)
    }

    fn grow_back(&mut self, places: usize) {
        if self.bytes.capacity() - self.bytes.len() < places * self.width() {
            self.close();
        }
        // After it is narrowed.
        let bytes = places * self.width();
        if self.bytes.capacity() - self.bytes.len() < bytes {
            self.bytes.reserve_exact(bytes + GROWTH);
        }
        self.bytes.resize(self.bytes.len() + bytes, 0);
    }

    /// Leaves some bytes in front: what is put back comes newest first.
    fn grow_front(&mut self, places: usize) {
        let bytes = places * self.width();
        if self.gone < bytes {
            let missing = bytes + GROWTH - self.gone;
            self.bytes.reserve_exact(missing);
            self.bytes.splice(0..0, std::iter::repeat_n(0, missing));
            self.gone += missing;
        }
        self.gone -= bytes;
        self.bytes.get_mut(self.gone..self.gone + bytes).unwrap_or_default().fill(0);
    }

    /// Closes up to the front, and narrows when the largest counts have left.
    fn close(&mut self) {
        self.bytes.drain(..self.gone);
        self.gone = 0;
        let is_wide = |count: &[u8]| count.last().is_some_and(|byte| *byte > 0);
        while self.width > 1 && !self.counts().rchunks_exact(self.width()).any(is_wide) {
            self.repack(self.width - 1);
        }
    }

    /// Changes how many bytes a count takes. They must do.
    fn repack(&mut self, width: u8) {
        let mut bytes = Vec::with_capacity(self.len() * usize::from(width) + GROWTH);
        for count in self.counts().chunks_exact(self.width()) {
            bytes.extend(number_of(count).to_le_bytes().iter().take(width.into()));
        }
        (self.bytes, self.gone, self.width) = (bytes, 0, width);
    }
}

/// How many bytes `n` takes.
fn width_of(n: u32) -> u8 {
    match n {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        0x100_0000.. => 4,
    }
}

fn number_of(count: &[u8]) -> u32 {
    match *count {
        [a] => u32::from(a),
        [a, b] => u32::from_le_bytes([a, b, 0, 0]),
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// In sums as narrow as they can be: what is busy is summed often.
fn sum_of_bytes(counts: &[u8]) -> u64 {
    let sum = |counts: &[u8]| counts.iter().map(|count| u16::from(*count)).sum::<u16>();
    counts.chunks(1 << 8).map(|counts| u64::from(sum(counts))).sum()
}

fn sum_of_pairs(counts: &[u8]) -> u64 {
    let (counts, _) = counts.as_chunks::<2>();
    let sum = |counts: &[[u8; 2]]| counts.iter().map(|count| u32::from(u16::from_le_bytes(*count))).sum::<u32>();
    counts.chunks(1 << 16).map(|counts| u64::from(sum(counts))).sum()
}

fn sum_of_wide<const WIDTH: usize>(counts: &[u8]) -> u64 {
    let (counts, _) = counts.as_chunks::<WIDTH>();
    counts.iter().map(|count| u64::from(number_of(count))).sum()
}

/// The first byte that is not 0, eight at a time.
fn first_filled(counts: &[u8]) -> Option<usize> {
    let (eights, _) = counts.as_chunks::<8>();
    let empty = eights.iter().take_while(|eight| **eight == [0; 8]).count() * 8;
    counts.get(empty..)?.iter().position(|byte| *byte > 0).map(|byte| empty + byte)
}

/// The last byte that is not 0, eight at a time.
fn last_filled(mut counts: &[u8]) -> Option<usize> {
    while let Some((older, [0, 0, 0, 0, 0, 0, 0, 0])) = counts.split_last_chunk() {
        counts = older;
    }
    counts.iter().rposition(|byte| *byte > 0)
}
