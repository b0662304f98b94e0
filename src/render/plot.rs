//! Plots: PNGs of shapes only, and their stand-ins in Unicode. No text in a picture, so that it needs no font and its labels
//! stay readable at any size. What is plotted, and the sentence that says the same, come from `digest`.
//!
//! Every edge lies on a whole pixel and only a dot is smoothed: the same numbers give the same bytes on every machine.

use crate::event::Class;
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Rect, Transform};

/// Kinds of fault that are told apart in a plot, from the bottom of a stack to its top.
pub const BAND_COUNT: usize = 5;

/// How a band looks; colour is never the only mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Solid,
    Stripes,
    Outline,
}

/// A kind of fault in a stacked plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Its colour as `#RRGGBB`, the same in light and dark.
    pub colour: &'static str,
    /// The sign that stands for it in a legend.
    pub symbol: &'static str,
    rgb: [u8; 3],
    mark: Mark,
}

/// The bands, bottom first.
pub const BANDS: [Band; BAND_COUNT] = [
    Band { colour: "#858B96", symbol: "■", rgb: [0x85, 0x8B, 0x96], mark: Mark::Solid },
    Band { colour: "#0072B2", symbol: "■", rgb: [0x00, 0x72, 0xB2], mark: Mark::Solid },
    Band { colour: "#D55E00", symbol: "■", rgb: [0xD5, 0x5E, 0x00], mark: Mark::Solid },
    Band { colour: "#9C3FE0", symbol: "▤", rgb: [0x9C, 0x3F, 0xE0], mark: Mark::Stripes },
    Band { colour: "#12A06A", symbol: "□", rgb: [0x12, 0xA0, 0x6A], mark: Mark::Outline },
];

/// The band that a class is drawn in.
pub fn band_of(class: Class) -> usize {
    match class {
        Class::Transient | Class::RateLimited => 0,
        Class::InvalidInput => 1,
        Class::Persistent => 2,
        Class::LlmOutput | Class::LlmRefusal | Class::LlmHallucination | Class::LlmContext | Class::LlmBehavior => 3,
        Class::OutcomeUnknown | Class::Catastrophic | Class::Interrupted | Class::Unclassified => 4,
    }
}

const WIDTH: u32 = 1040;
const BARS_HEIGHT: u32 = 272;
const LINE_HEIGHT: u32 = 124;
const HEAT_CELL: (u32, u32) = (18, 28);
const HEAT_RGB: [u8; 3] = [0x4C, 0x5A, 0xD8];
const AXIS_RGB: [u8; 3] = [0x6E, 0x74, 0x80];
/// Lowest count of each shade, and how opaque it is.
const HEAT_STEPS: [(u64, u8); 4] = [(1, 62), (4, 112), (8, 170), (16, 255)];

/// The smallest round and even number that is at least `max`, and at least 2: the top of an axis with one middle line.
pub fn ceiling(max: u64) -> u64 {
    const STEPS: [u64; 13] = [10, 12, 16, 20, 24, 30, 40, 50, 60, 70, 80, 90, 100];
    if max <= 10 {
        return (max + max % 2).max(2);
    }
    let mut unit: u64 = 1;
    loop {
        if let Some(step) = STEPS.iter().find(|s| s.saturating_mul(unit) >= max) {
            return step.saturating_mul(unit);
        }
        unit = unit.saturating_mul(10);
    }
}

/// Bars of `█`, `▁` … for text, one sign a value, `·` for 0; the largest value is the full height.
pub fn sparkline(values: &[u64]) -> String {
    const SIGNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let max = u128::from(values.iter().copied().max().unwrap_or(0).max(1));
    let sign = |v: u64| match (u128::from(v) * 8).div_ceil(max) {
        0 => '·',
        n => SIGNS[usize::try_from(n - 1).unwrap_or(7).min(7)],
    };
    values.iter().map(|v| sign(*v)).collect()
}

/// A horizontal bar of `█`, `width` signs for `max`; at least one sign for what is not 0.
pub fn level(value: u64, max: u64, width: u64) -> String {
    let signs = value.saturating_mul(width) / max.max(1);
    "█".repeat(usize::try_from(signs.max(u64::from(value > 0))).unwrap_or(0))
}

/// Stacked bars, 1040×272: one stack a bucket, `top` is the full height.
pub fn bars(stacks: &[[u64; BAND_COUNT]], top: u64) -> Vec<u8> {
    let mut canvas = Canvas::new(WIDTH, BARS_HEIGHT);
    let floor = BARS_HEIGHT - 3;
    canvas.grid(floor, true);
    let count = u32::try_from(stacks.len().max(1)).unwrap_or(u32::MAX);
    for (index, stack) in (0..count).zip(stacks) {
        let (left, right) = (WIDTH * index / count, WIDTH * (index + 1) / count);
        let margin = (right - left) * 18 / 100;
        canvas.stack(stack, top, floor, left + margin, right - left - 2 * margin);
    }
    canvas.png()
}

/// A line in steps, 1040×124, with a dot at its end: `values` in time order, `top` is the full height.
pub fn line(values: &[u64], top: u64) -> Vec<u8> {
    const WEIGHT: u32 = 5;
    let mut canvas = Canvas::new(WIDTH, LINE_HEIGHT);
    let floor = LINE_HEIGHT - 3;
    canvas.grid(floor, false);
    let count = u32::try_from(values.len().max(1)).unwrap_or(u32::MAX);
    let height = |v: u64| floor - 8 - scale(v, top, floor - 16);
    let end = WIDTH - 8;
    let mut last = None;
    for (index, value) in (0..count).zip(values) {
        let (left, right, y) = (end * index / count, end * (index + 1) / count, height(*value));
        canvas.fill(AXIS_RGB, 255, left, y, right - left + WEIGHT, WEIGHT);
        if let Some(before) = last {
            let (high, low) = (y.min(before), y.max(before));
            canvas.fill(AXIS_RGB, 255, left, high, WEIGHT, low - high + WEIGHT);
        }
        last = Some(y);
    }
    if let Some(y) = last {
        canvas.dot(AXIS_RGB, end, y + WEIGHT / 2, 6);
    }
    canvas.png()
}

/// The heat map, 432×196: `counts` by weekday, Monday first, and hour of the day.
pub fn heat(counts: &[[u64; 24]; 7]) -> Vec<u8> {
    let mut canvas = Canvas::new(HEAT_CELL.0 * 24, HEAT_CELL.1 * 7);
    for (row, hours) in (0..).zip(counts) {
        for (column, count) in (0..).zip(hours) {
            canvas.shade(*count, column * HEAT_CELL.0, row * HEAT_CELL.1, HEAT_CELL.0 - 2, HEAT_CELL.1 - 2);
        }
    }
    canvas.png()
}

/// The key of the heat map, 120×24: its five shades from 0 to "16 or more".
pub fn heat_key() -> Vec<u8> {
    let mut canvas = Canvas::new(120, 24);
    for (column, count) in (0..).zip([0, 1, 4, 8, 16]) {
        canvas.shade(count, column * 24, 0, 22, 24);
    }
    canvas.png()
}

/// `value` of `top` as pixels of `height`, at most `height`.
fn scale(value: u64, top: u64, height: u32) -> u32 {
    let pixels = u128::from(value) * u128::from(height) / u128::from(top.max(1));
    u32::try_from(pixels).unwrap_or(height).min(height)
}

/// A transparent picture. Coordinates are pixels from the top left.
struct Canvas(Option<Pixmap>);

impl Canvas {
    fn new(width: u32, height: u32) -> Self {
        Self(Pixmap::new(width, height))
    }

    #[expect(clippy::cast_precision_loss, reason = "a coordinate is below 2^24")]
    fn fill(&mut self, rgb: [u8; 3], alpha: u8, x: u32, y: u32, width: u32, height: u32) {
        let rect = Rect::from_xywh(x as f32, y as f32, width as f32, height as f32);
        if let (Some(pixmap), Some(rect)) = (self.0.as_mut(), rect) {
            pixmap.fill_rect(rect, &paint(rgb, alpha, false), Transform::identity(), None);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a coordinate is below 2^24")]
    fn dot(&mut self, rgb: [u8; 3], x: u32, y: u32, radius: u32) {
        let circle = PathBuilder::from_circle(x as f32, y as f32 + 0.5, radius as f32);
        if let (Some(pixmap), Some(circle)) = (self.0.as_mut(), circle) {
            pixmap.fill_path(&circle, &paint(rgb, 255, true), FillRule::Winding, Transform::identity(), None);
        }
    }

    /// Lines for the top, the middle if asked for, and the floor.
    fn grid(&mut self, floor: u32, middle: bool) {
        self.fill(AXIS_RGB, 64, 0, 0, WIDTH, 2);
        if middle {
            self.fill(AXIS_RGB, 64, 0, floor / 2, WIDTH, 2);
        }
        self.fill(AXIS_RGB, 208, 0, floor, WIDTH, 2);
    }

    /// One stack. Each band that is not 0 can be seen, however small, with a gap below the next one.
    fn stack(&mut self, stack: &[u64; BAND_COUNT], top: u64, floor: u32, x: u32, width: u32) {
        const GAP: u32 = 3;
        let mut bottom = floor;
        for (band, count) in BANDS.iter().zip(stack).filter(|(_, count)| **count > 0) {
            let height = scale(*count, top, floor).max(6).min(bottom);
            let shown = height.saturating_sub(GAP).max(1);
            self.band(band, x, bottom.saturating_sub(shown), width.max(1), shown);
            bottom = bottom.saturating_sub(height);
        }
    }

    fn band(&mut self, band: &Band, x: u32, y: u32, width: u32, height: u32) {
        const STROKE: u32 = 3;
        match band.mark {
            Mark::Stripes => {
                let bottom = y + height;
                let mut at = bottom;
                while at > y {
                    let thick = 5.min(at - y);
                    self.fill(band.rgb, 255, x, at - thick, width, thick);
                    at = at.saturating_sub(8).max(y);
                }
            }
            Mark::Outline if height > 3 * STROKE && width > 3 * STROKE => {
                self.fill(band.rgb, 255, x, y, width, STROKE);
                self.fill(band.rgb, 255, x, y + height - STROKE, width, STROKE);
                self.fill(band.rgb, 255, x, y + STROKE, STROKE, height - 2 * STROKE);
                self.fill(band.rgb, 255, x + width - STROKE, y + STROKE, STROKE, height - 2 * STROKE);
            }
            Mark::Solid | Mark::Outline => self.fill(band.rgb, 255, x, y, width, height),
        }
    }

    fn shade(&mut self, count: u64, x: u32, y: u32, width: u32, height: u32) {
        match HEAT_STEPS.iter().rev().find(|(lowest, _)| count >= *lowest) {
            Some((_, alpha)) => self.fill(HEAT_RGB, *alpha, x, y, width, height),
            None => self.fill(AXIS_RGB, 40, x, y, width, height),
        }
    }

    /// The picture as PNG; empty only if a picture of that size can't be made.
    fn png(self) -> Vec<u8> {
        self.0.and_then(|pixmap| encode(&pixmap).ok()).unwrap_or_default()
    }
}

/// Rows of a plot mostly repeat the row above, which is what the filter `Up` is for.
fn encode(pixmap: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let pixels: Vec<u8> = pixmap
        .pixels()
        .iter()
        .flat_map(|p| {
            let c = p.demultiply();
            [c.red(), c.green(), c.blue(), c.alpha()]
        })
        .collect();
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Default);
    encoder.set_filter(png::FilterType::Up);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(png)
}

fn paint(rgb: [u8; 3], alpha: u8, smooth: bool) -> Paint<'static> {
    let mut paint = Paint { anti_alias: smooth, ..Paint::default() };
    paint.set_color(Color::from_rgba8(rgb[0], rgb[1], rgb[2], alpha));
    paint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(png: &[u8]) -> Pixmap {
        Pixmap::decode_png(png).unwrap()
    }

    fn rgb_at(pixmap: &Pixmap, x: u32, y: u32) -> Option<[u8; 3]> {
        let p = pixmap.pixel(x, y).unwrap().demultiply();
        (p.alpha() == 255).then(|| [p.red(), p.green(), p.blue()])
    }

    #[test]
    fn the_top_of_an_axis_is_round_even_and_not_below_the_maximum() {
        let tops: Vec<u64> = [0, 1, 3, 10, 11, 23, 28, 170, 684, 2_001].into_iter().map(ceiling).collect();
        assert_eq!(tops, [2, 2, 4, 10, 12, 24, 30, 200, 700, 2_400]);
        for max in (0..5_000).chain([u64::MAX / 2, u64::MAX]) {
            let top = ceiling(max);
            assert!(top >= max && (top.is_multiple_of(2) || top == u64::MAX), "{max} {top}");
        }
    }

    #[test]
    fn a_sparkline_shows_zero_as_a_dot_and_the_maximum_full() {
        assert_eq!(sparkline(&[0, 1, 7, 14, 21, 28]), "·▁▂▄▆█");
        assert_eq!(sparkline(&[0, 0]), "··");
        assert_eq!(sparkline(&[u64::MAX, 1]), "█▁");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn a_level_shows_what_is_not_zero() {
        assert_eq!(level(0, 72, 40), "");
        assert_eq!(level(1, 7_200, 40), "█");
        assert_eq!(level(36, 72, 40).chars().count(), 20);
    }

    #[test]
    fn pictures_have_the_size_of_the_page_and_stay_small() {
        let stacks: Vec<[u64; 5]> = (0..24).map(|n| [n, n % 3, n % 5, n % 2, n % 7]).collect();
        let values: Vec<u64> = (0..48).map(|n| n * 7 % 23).collect();
        for (png, width, height) in [
            (bars(&stacks, 40), 1040, 272),
            (line(&values, 24), 1040, 124),
            (heat(&[[3; 24]; 7]), 432, 196),
            (heat_key(), 120, 24),
            (bars(&[], 2), 1040, 272),
            (line(&[], 2), 1040, 124),
        ] {
            let pixmap = decode(&png);
            assert_eq!((pixmap.width(), pixmap.height()), (width, height));
            assert!(png.len() < 8_000, "{} bytes", png.len());
        }
    }

    #[test]
    fn the_same_numbers_give_the_same_bytes() {
        assert_eq!(bars(&[[1, 2, 3, 4, 5]], 30), bars(&[[1, 2, 3, 4, 5]], 30));
        assert_eq!(line(&[3, 9, 4], 10), line(&[3, 9, 4], 10));
    }

    #[test]
    fn one_failure_beside_ten_thousand_is_seen() {
        let pixmap = decode(&bars(&[[10_000, 0, 0, 0, 0], [0, 0, 1, 0, 0]], 10_000));
        let column: Vec<_> = (0..269).filter_map(|y| rgb_at(&pixmap, 780, y)).collect();
        assert!(column.contains(&[0xD5, 0x5E, 0x00]));
    }

    #[test]
    fn llm_is_striped_and_unknown_outcome_is_hollow() {
        let pixmap = decode(&bars(&[[0, 0, 0, 100, 0], [0, 0, 0, 0, 100]], 100));
        let striped: Vec<bool> = (10..260).map(|y| rgb_at(&pixmap, 260, y).is_some()).collect();
        assert!(striped.contains(&true) && striped.contains(&false));
        assert_eq!(rgb_at(&pixmap, 780, 200), None, "the middle of an outline is empty");
        assert!((520..1040).any(|x| rgb_at(&pixmap, x, 200) == Some([0x12, 0xA0, 0x6A])), "its edge is not");
    }

    #[test]
    fn stacks_over_the_top_stay_inside_the_picture() {
        let png = bars(&[[u64::MAX, u64::MAX, 1, u64::MAX, 7]; 200], 2);
        assert_eq!(decode(&png).width(), 1040);
        assert_eq!(decode(&line(&[u64::MAX, 0], 2)).width(), 1040);
    }
}
