//! `matins backtest`: what a config would have told over recorded events, and what another one would tell differently.

use super::Failure;
use super::args::{BacktestArgs, BacktestFormat};
use crate::app;
use crate::backtest::against::{Difference, Tally};
use crate::backtest::input::Input;
use crate::backtest::line::Line;
use crate::backtest::report::{Ndjson, Report};
use crate::backtest::{KEYS, Sink, Span, Verdict, play};
use crate::clock;
use crate::config;
use crate::live::Live;
use crate::render::Parts;
use crate::store::Store;
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::ExposeSecret as _;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Nobody has recorded for longer.
const LENGTH_MAX: TimeDelta = TimeDelta::days(3_660);

/// Exit code 1 when `--against` finds a protected event that lost its page.
pub(super) async fn run(args: BacktestArgs) -> Result<ExitCode, Failure> {
    let live = load(&args.config.config)?;
    let other = args.against.as_deref().map(load).transpose()?;
    let input = open(&args, &live).await?;
    let span = span((args.from, args.to), input.arrivals())?;
    note_left_out(&input, span);
    match other {
        Some(other) => compare(&args, &live, &other, &input, span).await,
        None => {
            print(&args, &live, &input, span).await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn load(path: &Path) -> Result<Arc<Live>, Failure> {
    let loaded = config::load(path, &config::environment, clock::now());
    let loaded = loaded.map_err(|e| Failure::Usage(e.to_string()))?;
    Ok(Arc::new(app::compile(loaded, Vec::new(), &KEYS, Parts::Words).0))
}

async fn open(args: &BacktestArgs, live: &Live) -> Result<Input, Failure> {
    if let Some(path) = &args.events {
        return Ok(Input::open(path, &live.reader)?);
    }
    let store = Store::open_to_read(live.config.store.url.expose_secret()).await?;
    let to = args.to.unwrap_or_else(clock::now);
    let last = args.last.and_then(|last| to.checked_sub_signed(TimeDelta::from_std(last).ok()?));
    let from = args.from.or(last).unwrap_or(DateTime::UNIX_EPOCH);
    Ok(Input::of_store(store, from, to).await?)
}

/// From the first arrival to the last, unless said.
fn span(
    (from, to): (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    arrivals: Option<(DateTime<Utc>, DateTime<Utc>)>,
) -> Result<Span, Failure> {
    let (first, last) = arrivals.unzip();
    // The last event is to be read as well.
    let end_at = to.or(last.map(|at| at + TimeDelta::milliseconds(1))).or(from).unwrap_or_default();
    let start_at = from.or(first).unwrap_or(end_at);
    if end_at < start_at {
        return Err(Failure::Usage("--to is before --from".to_owned()));
    }
    if end_at - start_at > LENGTH_MAX && (from.is_none() || to.is_none()) {
        let (start, end) = (start_at.format("%Y-%m-%d"), end_at.format("%Y-%m-%d"));
        let words = format!("the events are from {start} to {end}: a time among them is wrong; say --from and --to");
        return Err(Failure::Usage(words));
    }
    Ok(Span { from: start_at, to: end_at })
}

/// Says how many events are not played. One without any time arrives with the line before it, or in 1970.
fn note_left_out(input: &Input, span: Span) {
    let (all, within) = (input.count(), input.count_within(span));
    if within < all {
        eprintln!("{} of {all} events arrive before --from or after --to and are left out", all - within);
    }
}

async fn print(args: &BacktestArgs, live: &Arc<Live>, input: &Input, span: Span) -> Result<(), Failure> {
    let out = BufWriter::with_capacity(1 << 16, io::stdout());
    match args.format {
        BacktestFormat::Ndjson => {
            let mut sink = Watched::new(Ndjson::new(out), input, span);
            play(live, input, span, &mut sink).await?;
            sink.end().finish()?;
        }
        BacktestFormat::Text => {
            let mut sink = Watched::new(Report::new(out, live.announcer.zone()), input, span);
            play(live, input, span, &mut sink).await?;
            sink.end().finish()?;
        }
    }
    Ok(())
}

async fn compare(
    args: &BacktestArgs,
    current: &Arc<Live>,
    proposed: &Arc<Live>,
    input: &Input,
    span: Span,
) -> Result<ExitCode, Failure> {
    let mut tallies = Vec::new();
    for live in [current, proposed] {
        let mut sink = Watched::new(Tally::default(), input, span);
        play(live, input, span, &mut sink).await?;
        tallies.push(sink.end());
    }
    let [current, proposed] = tallies.as_slice() else { return Ok(ExitCode::FAILURE) };
    let difference = Difference::between(current, proposed);
    match args.format {
        BacktestFormat::Text => print!("{}", difference.write()),
        BacktestFormat::Ndjson => println!("{}", serde_json::to_string(&difference)?),
    }
    Ok(if difference.loses_a_page() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Shows on a terminal how far the play has come.
struct Watched<S> {
    sink: S,
    line_count: usize,
    is_shown: bool,
    shown: usize,
}

impl<S: Sink> Watched<S> {
    fn new(sink: S, input: &Input, span: Span) -> Self {
        let is_shown = io::stderr().is_terminal();
        Self { sink, line_count: input.count_within(span), is_shown, shown: usize::MAX }
    }

    fn end(self) -> S {
        if self.is_shown {
            eprint!("\r\u{1b}[K");
        }
        self.sink
    }
}

impl<S: Sink> Sink for Watched<S> {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.sink.line(line)
    }

    fn event(&mut self, number: u32, verdict: Verdict) {
        self.sink.event(number, verdict);
    }

    fn progress(&mut self, at: DateTime<Utc>, read_count: usize) {
        let percent = read_count * 100 / self.line_count.max(1);
        if !self.is_shown || percent == self.shown {
            return;
        }
        self.shown = percent;
        let bar = "#".repeat(percent * 40 / 100);
        eprint!("\r[{bar:<40}] {percent:>3} %  {}\u{1b}[K", at.format("%Y-%m-%d"));
        // A bar that can't be drawn is not missed.
        let _ = io::stderr().flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_that_is_far_from_the_others_is_named_unless_the_span_is_said() {
        let arrivals = Some((at("2026-01-01T00:00:00Z"), at("9999-12-31T00:00:00Z")));
        let Err(Failure::Usage(words)) = span((None, None), arrivals) else { panic!("it is played") };
        assert!(words.contains("from 2026-01-01 to 9999-12-31"), "{words}");
        let to = Some(at("2026-02-01T00:00:00Z"));
        assert_eq!(span((None, to), arrivals).ok().map(|span| span.to), to);
        let year = Some((at("2026-01-01T00:00:00Z"), at("2026-12-31T00:00:00Z")));
        assert!(span((None, None), year).is_ok());
    }
}
