//! Tests: a vector's traffic as the lines of a file of events. Runs are reported when they are over, every 10 s where that matters, and in
//! longer steps elsewhere. What should come of them is not known here.

use super::{Alert, TICK, Vector, bucket, instant};
use crate::backtest::line::write_instant;
use serde_json::{Value, json};

/// A report is not missed within this, nor within three times the interval before it, in s.
const PATIENCE: i64 = 60;

impl Vector {
    /// Where the timeline begins.
    pub fn first_second(&self) -> i64 {
        let first = self.traffic.iter().map(|part| part.from).min().unwrap_or(0);
        first.max(self.config.history_from.unwrap_or(first))
    }

    /// Spans in which runs are reported every 10 s, in order: around what changes, what is expected, and what then leaves a window.
    fn fine_spans(&self, alert: &Alert) -> Vec<(i64, i64)> {
        let Some((long, short)) = alert.windows() else { return Vec::new() };
        let changes = self.traffic.iter().flat_map(|part| [part.from, part.to]).filter(|at| *at > self.first_second());
        let ends = self.expected(alert).iter().flat_map(|(fired, reset)| [Some(*fired), *reset]).flatten();
        let leaves = changes.clone().flat_map(|at| [at, at + long, at + short]);
        let enters = ends.flat_map(|at| [at, at - long, at - short]);
        let margin = 2 * bucket(long).max(60);
        let round = |at: i64| at.div_euclid(300) * 300;
        let around = |at: i64| (round(at - margin), round(at + margin) + 300);
        // A page may fire close to its threshold for long, in a window so short that a late report shows in it.
        let is_short = short <= 1_800;
        let fires = self.expected(alert).iter().filter(|_| is_short);
        let fires = fires.map(|(fired, reset)| (round(*fired), reset.unwrap_or(self.horizon)));
        let mut spans: Vec<(i64, i64)> = leaves.chain(enters).map(around).chain(fires).collect();
        spans.sort_unstable();
        spans
    }

    /// Spans of the timeline that are reported at once: short ones where it matters, then longer ones, but none that is missed.
    fn steps(&self, alert: &Alert) -> Vec<(i64, i64)> {
        let (fine, mut steps) = (self.fine_spans(alert), Vec::new());
        let coarse = alert.long.map_or(PATIENCE, |long| bucket(long).max(PATIENCE));
        let (mut at, end) = (self.first_second(), self.horizon + 1);
        let mut length = PATIENCE;
        while at < end {
            let next = fine.iter().map(|(from, _)| *from).find(|from| *from > at).unwrap_or(end);
            length = if fine.iter().any(|span| (span.0..span.1).contains(&at)) {
                TICK
            } else {
                let is_long_ago = fine.first().is_none_or(|(from, _)| at < *from) || next == end;
                let most = if is_long_ago { 300 } else { coarse };
                (length * 3).max(PATIENCE).min(most).min(next - at)
            };
            let until = (at + length).min(end);
            steps.push((at, until));
            at = until;
        }
        steps
    }

    /// The lines of a file, for this tier.
    pub fn lines(&self, alert: &Alert) -> Vec<String> {
        let mut file = Events::default();
        for (from, until) in self.steps(alert) {
            let told = until - 1;
            let (mut ok, mut failed, mut offset, mut copies) = (0, 0, 0, 1);
            for part in self.traffic.iter().filter(|part| part.kind == "rate" && part.total > 0) {
                let seconds = (part.to.min(until) - part.from.max(from)).max(0);
                ok += (part.total - part.bad) * seconds;
                if seconds > 0 {
                    (offset, copies) = (part.ts_offset, part.copies.unwrap_or(1));
                }
                match part.recv_delay {
                    0 => failed += part.bad * seconds,
                    delay => file.report((told, told + delay), (0, part.bad * seconds), 1),
                }
            }
            file.report((told + offset, self.arrives(told)), (ok, failed), copies);
        }
        for part in self.traffic.iter().filter(|part| part.kind == "pulse" || part.total == 0) {
            let every = part.every.filter(|_| part.kind == "pulse").unwrap_or(1);
            let until = part.to.min(self.horizon + 1);
            for second in (part.from..until).step_by(usize::try_from(every).unwrap()) {
                match part.total {
                    0 => (0..part.bad).for_each(|_| file.failure(second)),
                    total => file.report((second, second), (total - part.bad, part.bad), 1),
                }
            }
        }
        file.lines
    }

    /// What is told while nobody reads waits in the stream.
    fn arrives(&self, told: i64) -> i64 {
        self.config.down.filter(|(from, to)| (*from..*to).contains(&told)).map_or(told, |(_, to)| to)
    }
}

/// Events that are written one a line.
#[derive(Default)]
struct Events {
    lines: Vec<String>,
}

impl Events {
    /// A report of runs, if there were any: when it happened and arrived, how many were good and failed, how often it comes.
    fn report(&mut self, (happened, arrived): (i64, i64), (ok, failed): (i64, i64), copies: usize) {
        if ok + failed > 0 {
            let counts = json!({ "type": "outcome", "ok": ok, "failed": failed });
            self.write(counts, happened, arrived, copies);
        }
    }

    /// A failed run of which nothing else is told.
    fn failure(&mut self, second: i64) {
        self.write(json!({ "disposition": "failed", "error": { "http_status": 422 } }), second, second, 1);
    }

    fn write(&mut self, mut event: Value, happened: i64, arrived: i64, copies: usize) {
        event["id"] = json!(format!("e{}", self.lines.len()));
        event["workflow"] = json!("busy");
        event["occurred_at"] = json!(write_instant(instant(happened)));
        event["received_at"] = json!(write_instant(instant(arrived)));
        self.lines.extend(std::iter::repeat_n(event.to_string(), copies));
    }
}
