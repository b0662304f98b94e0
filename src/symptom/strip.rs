//! A strip of counts, one a place, from the oldest that is not empty to the newest: no place says where it is, and all
//! take as many bytes as the largest count needs. Which time a place stands for is said elsewhere.

use std::ops::Range;

/// How many bytes a strip grows by: doubling would waste what narrow counts save.
const GROWTH: usize = 32;

/// Unused bytes that a strip keeps at most.
pub(super) const SLACK_MAX: usize = 2 * GROWTH;

/// Counts in a row, each with a number. The first and the last are never empty.
#[derive(Clone, Debug)]
pub(super) struct Strip {
    /// Bytes that are left behind, then the counts, little-endian.
    bytes: Vec<u8>,
    /// How many bytes are left behind.
    gone: usize,
    /// The number of the first place.
    first: u32,
    /// Bytes of a count, 1 to 4.
    width: u8,
}

impl Default for Strip {
    fn default() -> Self {
        Self { bytes: Vec::new(), gone: 0, first: 0, width: 1 }
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
        self.counts().len() / self.width()
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
        let sum = self.count(place).saturating_add(n);
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
        let newer = self.counts().get(self.width()..).unwrap_or_default();
        match first_filled(newer).map(|byte| byte / self.width() + 1) {
            Some(places) => {
                self.gone += places * self.width();
                self.first = self.first.saturating_add(u32::try_from(places).unwrap_or(u32::MAX));
            }
            None => *self = Self::default(),
        }
        Some(popped)
    }

    /// Gives back what is unused, when it is much.
    pub fn shrink(&mut self) {
        if self.bytes.capacity() - self.counts().len() > SLACK_MAX {
            self.close();
            self.bytes.shrink_to(self.bytes.len() + GROWTH);
        }
    }

    /// The sum of some places, and the oldest of them that is not empty.
    pub fn sum(&self, places: Range<usize>) -> (u64, Option<usize>) {
        let counts = self.part(&places);
        let n = match self.width {
            1 => sum_of::<1>(counts),
            2 => sum_of::<2>(counts),
            3 => sum_of::<3>(counts),
            _ => sum_of::<4>(counts),
        };
        let oldest = (n > 0).then(|| first_filled(counts)).flatten();
        (n, oldest.map(|byte| places.start + byte / self.width()))
    }

    /// Those of some places that are not empty as (number, count), newest first.
    pub fn filled(&self, places: Range<usize>) -> impl Iterator<Item = (u32, u32)> {
        let (width, mut left) = (self.width(), self.part(&places));
        let first = self.first.saturating_add(u32::try_from(places.start).unwrap_or(u32::MAX));
        std::iter::from_fn(move || {
            let place = last_filled(left)? / width;
            let (older, count) = left.split_at_checked(place * width)?;
            left = older;
            Some((first.saturating_add(u32::try_from(place).ok()?), number_of(count.get(..width)?)))
        })
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.bytes.capacity()
    }

    fn width(&self) -> usize {
        self.width.into()
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
    count.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte))
}

fn sum_of<const WIDTH: usize>(counts: &[u8]) -> u64 {
    let (counts, _) = counts.as_chunks::<WIDTH>();
    counts.iter().map(|count| u64::from(number_of(count))).sum()
}

/// The first byte that is not 0. Most places of something rare are empty, so eight bytes are looked at at once.
fn first_filled(counts: &[u8]) -> Option<usize> {
    let (eights, _) = counts.as_chunks::<8>();
    let empty = eights.iter().take_while(|eight| **eight == [0; 8]).count() * 8;
    counts.get(empty..)?.iter().position(|byte| *byte > 0).map(|byte| empty + byte)
}

/// The last byte that is not 0.
fn last_filled(mut counts: &[u8]) -> Option<usize> {
    while let Some((older, [0, 0, 0, 0, 0, 0, 0, 0])) = counts.split_last_chunk() {
        counts = older;
    }
    counts.iter().rposition(|byte| *byte > 0)
}
