//! What the plots show: buckets, labels, and the sentence that says the same. Drawing them is `render::plot`'s work.

use super::compose::Form;
use super::drawing::{draw_classes, draw_heat, indent};
use super::input::Window;
use super::tally::Tally;
use super::view::{ClassBar, Heat, HeatRow, LegendItem, Plot, PlotLabel, PlotView};
use crate::event::Class;
use crate::render::plot::{self, BAND_COUNT, BANDS};
use crate::render::{InlineImage, words};
use chrono::{DateTime, Datelike, Timelike, Utc};
use std::cmp::Reverse;
use std::collections::BTreeMap;

const BUCKETS_MAX: u64 = 30;
/// Signs of a bar plot in text.
const TEXT_WIDTH: usize = 48;
const LABELS_MAX: usize = 6;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How a window is cut into bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buckets {
    window: Window,
    seconds: u64,
    count: usize,
}

impl Buckets {
    /// The finest round length that gives no more than 30 bars; days once the window is long. Events of a window over
    /// six hours are counted by the hour, so its bars are no finer.
    fn new(window: Window) -> Self {
        let length = window.seconds();
        let steps = [5 * MINUTE, 15 * MINUTE, HOUR, 2 * HOUR, DAY, 7 * DAY, 30 * DAY];
        let is_known = |s: &u64| *s >= HOUR || length <= 6 * HOUR;
        let fits = |s: &u64| is_known(s) && length.div_ceil(*s) <= BUCKETS_MAX;
        let seconds = steps.into_iter().find(fits).unwrap_or_else(|| length.div_ceil(BUCKETS_MAX));
        Self { window, seconds, count: usize::try_from(length.div_ceil(seconds)).unwrap_or(1).max(1) }
    }

    /// Bar of an instant; what lies outside the window goes to its edge.
    fn index(&self, at: DateTime<Utc>) -> usize {
        let since = (at - self.window.start_at).num_seconds().max(0).unsigned_abs();
        usize::try_from(since / self.seconds).unwrap_or(0).min(self.count - 1)
    }

    fn start_at(&self, index: usize) -> DateTime<Utc> {
        self.window.start_at + std::time::Duration::from_secs(self.seconds * index as u64)
    }

    fn unit(&self) -> &'static str {
        match self.seconds {
            300 => "in steps of 5 minutes",
            900 => "by quarter hour",
            HOUR => "by hour",
            7_200 => "in steps of 2 hours",
            DAY => "by day",
            604_800 => "in steps of 7 days",
            2_592_000 => "in steps of 30 days",
            _ => "over time",
        }
    }
}

/// All plots of a digest.
pub(super) fn draw_up(tally: &Tally<'_>, form: Form) -> PlotView {
    let buckets = Buckets::new(tally.input.window);
    let stacks = stack_failures(tally, buckets);
    let levels = open_levels(tally, buckets);
    let classes = list_classes(tally);
    let classes_lines = draw_classes(&classes);
    let mut view = PlotView { classes, classes_lines, legend: list_legend(tally), ..PlotView::default() };
    if tally.totals.failures > 0 {
        view.failures = failures_plot(tally, buckets, &stacks);
        view.stacks = stacks;
    }
    if levels.iter().any(|n| *n > 0) {
        view.open = open_plot(tally, buckets, &levels);
        view.levels = levels;
    }
    if form == Form::Weekly && tally.totals.failures > 0 {
        let week = week_of_hours(tally);
        view.heat = heat(tally, &week);
        view.week = Some(Box::new(week));
    }
    view
}

impl PlotView {
    /// The pictures that the HTML part shows, by content id.
    pub fn images(&self) -> Vec<InlineImage> {
        let mut images = Vec::new();
        if !self.failures.cid.is_empty() {
            let top = plot::ceiling(self.stacks.iter().map(|s| s.iter().sum()).max().unwrap_or(0));
            images.push(InlineImage::new(&self.failures.cid, &plot::bars(&self.stacks, top)));
        }
        if !self.open.cid.is_empty() {
            let top = plot::ceiling(self.levels.iter().copied().max().unwrap_or(0));
            images.push(InlineImage::new(&self.open.cid, &plot::line(&self.levels, top)));
        }
        if let Some(week) = &self.week {
            images.push(InlineImage::new(&self.heat.cid, &plot::heat(week)));
            images.push(InlineImage::new(&self.heat.key_cid, &plot::heat_key()));
        }
        images
    }
}

fn stack_failures(tally: &Tally<'_>, buckets: Buckets) -> Vec<[u64; BAND_COUNT]> {
    let mut stacks = vec![[0; BAND_COUNT]; buckets.count];
    for cell in tally.input.cells.iter().filter(|c| c.is_failure() && !c.is_silenced()) {
        stacks[buckets.index(cell.at)][plot::band_of(cell.class)] += cell.count;
    }
    stacks
}

/// Open dead letters at the end of each bucket.
fn open_levels(tally: &Tally<'_>, buckets: Buckets) -> Vec<u64> {
    let flow = &tally.input.letter_flow;
    let mut changes = vec![(0, 0); buckets.count];
    for step in &flow.steps {
        let change = &mut changes[buckets.index(step.at)];
        change.0 += step.opened_count;
        change.1 += step.resolved_count;
    }
    let mut open = flow.open_at_start;
    changes
        .into_iter()
        .map(|(opened, resolved): (u64, u64)| {
            open = (open + opened).saturating_sub(resolved);
            open
        })
        .collect()
}

fn failures_plot(tally: &Tally<'_>, buckets: Buckets, stacks: &[[u64; BAND_COUNT]]) -> Plot {
    let sums: Vec<u64> = stacks.iter().map(|s| s.iter().sum()).collect();
    let title = format!("Failures {}", buckets.unit());
    let max = sums.iter().copied().max().unwrap_or(0);
    let peak = sums.iter().position(|n| *n == max).unwrap_or(0);
    let note = format!("Most: {} {}", words::count(max), when(tally, buckets, peak));
    let bands = list_legend(tally).iter().map(|l| format!("{} {}", l.count, l.text)).collect::<Vec<_>>().join("; ");
    let all = words::count(tally.totals.failures);
    let alt = format!("{title}: {all} in all. {note}. {bands}.");
    Plot { heading_lines: heading(&title, &note), title, note, alt, ..axis(tally, buckets, &sums, "failures") }
}

fn open_plot(tally: &Tally<'_>, buckets: Buckets, levels: &[u64]) -> Plot {
    let start = tally.input.letter_flow.open_at_start;
    let max = levels.iter().copied().max().unwrap_or(0).max(start);
    let end = tally.totals.letters_open;
    let (start, most, end) = (words::count(start), words::count(max), words::count(end));
    let note = format!("{start} at the start, {most} at most, {end} now");
    let title = "Dead letters open".to_owned();
    Plot {
        heading_lines: heading(&title, &note),
        title,
        alt: format!("Open dead letters {}: {note}.", buckets.unit()),
        note,
        ..axis(tally, buckets, levels, "open")
    }
}

/// Title and note in the columns of the numbers above, or one below the other.
fn heading(title: &str, note: &str) -> String {
    match title.chars().count() {
        0..27 => format!("{title:27}{note}"),
        _ => format!("{title}\n  {note}"),
    }
}

fn axis(tally: &Tally<'_>, buckets: Buckets, values: &[u64], cid: &str) -> Plot {
    let step = buckets.count.div_ceil(if buckets.seconds >= DAY { 8 } else { LABELS_MAX });
    let repeat = (TEXT_WIDTH / buckets.count).max(1);
    let short = plot::sparkline(values);
    let wide: String = short.chars().flat_map(|c| std::iter::repeat_n(c, repeat)).collect();
    let max = values.iter().copied().max().unwrap_or(0);
    Plot {
        cid: format!("{cid}-{}@matins", tally.input.number),
        top: words::count(plot::ceiling(max)),
        labels: labels(tally, buckets, step),
        bars_lines: indent(&format!("{wide}  0 to {}\n{}", words::count(max), text_axis(tally, buckets, step, repeat))),
        short_lines: format!("{short}\n{}", text_axis(tally, buckets, step, 1)),
        ..Plot::default()
    }
}

/// "between 22:00 and 23:00", "on Tue", "from 3 Nov".
fn when(tally: &Tally<'_>, buckets: Buckets, index: usize) -> String {
    let zone = tally.input.zone;
    let (start, end) = (buckets.start_at(index), buckets.start_at(index + 1).min(tally.end_at()));
    match buckets.seconds {
        s if s < DAY => format!("between {} and {}", words::clock(start, zone), words::clock(end, zone)),
        DAY => format!("from {}", words::date_time(start, zone)),
        _ => format!("from {}", words::date(start, zone)),
    }
}

fn label(tally: &Tally<'_>, buckets: Buckets, index: usize) -> String {
    let local = buckets.start_at(index).with_timezone(&tally.input.zone);
    let format = match buckets.seconds {
        s if s < DAY && buckets.window.seconds() <= 2 * DAY => "%H:%M",
        s if s < DAY => "%a %H:%M",
        DAY if buckets.window.seconds() <= 8 * DAY => "%a",
        _ => "%-d %b",
    };
    local.format(format).to_string()
}

fn labels(tally: &Tally<'_>, buckets: Buckets, step: usize) -> Vec<PlotLabel> {
    let starts = (0..buckets.count).step_by(step.max(1));
    starts
        .map(|index| {
            let width = step.min(buckets.count - index) * 10_000 / buckets.count;
            PlotLabel { text: label(tally, buckets, index), width: format!("{}.{:02}", width / 100, width % 100) }
        })
        .collect()
}

/// Labels below bars of `repeat` signs; one that would touch the one before is left out. Full hours lose their minutes.
fn text_axis(tally: &Tally<'_>, buckets: Buckets, step: usize, repeat: usize) -> String {
    let labels: Vec<(usize, String)> =
        (0..buckets.count).step_by(step.max(1)).map(|i| (i * repeat, label(tally, buckets, i))).collect();
    let is_full = labels.iter().all(|(_, text)| text.ends_with(":00"));
    let mut line = String::new();
    for (column, text) in labels {
        let text = if is_full { text.trim_end_matches(":00") } else { &text };
        let length = line.chars().count();
        if length == 0 || length < column {
            line.push_str(&" ".repeat(column - length));
            line.push_str(text);
        }
    }
    line
}

/// Classes in the plot, as bands: "92 retried: transient, rate limited".
fn list_legend(tally: &Tally<'_>) -> Vec<LegendItem> {
    let classes = classes(tally);
    let bands = BANDS.iter().enumerate().filter_map(|(index, band)| {
        let inside: Vec<_> = classes.iter().filter(|(c, _)| plot::band_of(*c) == index).collect();
        let count: u64 = inside.iter().map(|(_, n)| n).sum();
        (count > 0).then(|| LegendItem {
            symbol: band.symbol.to_owned(),
            colour: band.colour.to_owned(),
            count: words::count(count),
            text: band_name(index, &inside.iter().map(|(c, _)| words::class(*c)).collect::<Vec<_>>()),
        })
    });
    bands.collect()
}

fn band_name(index: usize, classes: &[&str]) -> String {
    match index {
        0 => format!("retried: {}", classes.join(", ")),
        3 => "LLM".to_owned(),
        _ => classes.join(", "),
    }
}

fn classes(tally: &Tally<'_>) -> Vec<(Class, u64)> {
    let mut classes: BTreeMap<Class, u64> = BTreeMap::new();
    for (class, count) in tally.workflows.values().flat_map(|t| &t.classes) {
        *classes.entry(*class).or_default() += count;
    }
    classes.into_iter().collect()
}

fn list_classes(tally: &Tally<'_>) -> Vec<ClassBar> {
    let mut classes = classes(tally);
    classes.sort_by_key(|(_, n)| Reverse(*n));
    let max = classes.first().map_or(1, |(_, n)| *n);
    let bar = |(class, count): (Class, u64)| ClassBar {
        class: words::class(class).to_owned(),
        count: words::count(count),
        bar: plot::level(count, max, 40),
    };
    classes.into_iter().map(bar).collect()
}

fn week_of_hours(tally: &Tally<'_>) -> [[u64; 24]; 7] {
    let mut week = [[0; 24]; 7];
    for cell in tally.input.cells.iter().filter(|c| c.is_failure() && !c.is_silenced()) {
        let local = cell.at.with_timezone(&tally.input.zone);
        week[local.weekday().num_days_from_monday() as usize % 7][local.hour() as usize % 24] += cell.count;
    }
    week
}

fn heat(tally: &Tally<'_>, week: &[[u64; 24]; 7]) -> Heat {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let hours = DAYS.iter().zip(week).flat_map(|(day, row)| row.iter().enumerate().map(move |(h, n)| (*n, *day, h)));
    // The first of several maxima.
    let peak = hours.fold((0, "Mon", 0), |best, next| if next.0 > best.0 { next } else { best });
    let (most, day, hour) = peak;
    let (from, to) = (format!("{hour:02}:00"), format!("{:02}:00", hour + 1));
    let share = format!("{} of {}", words::count(most), words::count(tally.totals.failures));
    let scale = week.iter().flatten().copied().max().unwrap_or(0);
    let rows: Vec<_> = DAYS.iter().zip(week).map(|(day, row)| heat_row(day, row, scale)).collect();
    Heat {
        cid: format!("heat-{}@matins", tally.input.number),
        key_cid: format!("heat-key-{}@matins", tally.input.number),
        alt: format!("Failures by hour and weekday. Most on {day} between {from} and {to}: {}.", words::count(most)),
        note: format!("{share} fell on {day} between {from} and {to}."),
        rows_lines: draw_heat(&rows),
        rows,
    }
}

/// All rows share one scale: the maximum is appended, and its sign dropped again.
fn heat_row(day: &str, row: &[u64; 24], scale: u64) -> HeatRow {
    let with_scale: Vec<u64> = row.iter().copied().chain([scale]).collect();
    let bars = plot::sparkline(&with_scale).chars().take(24).collect();
    HeatRow { day: day.to_owned(), bars, count: words::count(row.iter().sum()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(hours: i64) -> Buckets {
        let start_at = "2026-11-17T04:30:00Z".parse().unwrap();
        Buckets::new(Window { start_at, end_at: start_at + chrono::Duration::hours(hours) })
    }

    #[test]
    fn bars_are_round_and_no_more_than_thirty() {
        let seen: Vec<(u64, usize)> =
            [1, 2, 6, 24, 25, 72, 168, 24 * 90].map(buckets).map(|b| (b.seconds, b.count)).to_vec();
        let want = [(300, 12), (300, 24), (900, 24), (3_600, 24), (3_600, 25), (DAY, 3), (DAY, 7), (7 * DAY, 13)];
        assert_eq!(seen, want);
    }

    #[test]
    fn the_end_of_the_window_is_in_the_last_bar() {
        let b = buckets(24);
        assert_eq!(b.index(b.window.start_at - chrono::Duration::hours(2)), 0);
        assert_eq!(b.index(b.window.end_at - chrono::Duration::seconds(1)), 23);
        assert_eq!(b.index(b.window.end_at + chrono::Duration::hours(9)), 23);
    }
}
