//! Makes an item of a batch from a message of JetStream: its place in the stream, its headers, its bytes.

use super::commit::{Item, Progress, Redelivered};
use super::{DecodeOutcome, Inbound, Reader};
use crate::clock;
use crate::store::intake::QuarantineRow;
use async_nats::jetstream::Message;

/// Reads a message, and notes how far the batch reaches with it. What came up to `read_until` may have been read before.
pub(super) fn decode_one(
    reader: &Reader,
    message: &Message,
    incarnation: &str,
    read_until: i64,
    progress: &mut Progress,
) -> Item {
    let place = message.info().ok();
    let (sequence, received_at, redelivered) = match &place {
        Some(info) => {
            let is_old = info.delivered > 1 || info.stream_sequence.cast_signed() <= read_until;
            (info.stream_sequence, info.published, is_old)
        }
        // Without its place there is nothing better than now; such a message can't be acked either.
        None => (0, clock::now(), false),
    };
    progress.lag = place.as_ref().map_or(0, |info| info.pending);
    let received_at = crate::store::from_ms(received_at.timestamp_millis());
    progress.sequence = progress.sequence.max(sequence.cast_signed());
    progress.arrival_at = progress.arrival_at.max(received_at);
    let headers = headers(message);
    let inbound = Inbound {
        subject: message.subject.as_str(),
        headers: &headers,
        payload: &message.payload,
        stream: incarnation,
        sequence,
        received_at,
    };
    match reader.read(inbound) {
        DecodeOutcome::Event(decoded) => {
            Item::Event(decoded, if redelivered { Redelivered::Yes } else { Redelivered::No })
        }
        DecodeOutcome::Quarantine { reason } => Item::Unreadable(QuarantineRow {
            stream: progress.stream.clone(),
            sequence: sequence.cast_signed(),
            subject: message.subject.to_string(),
            headers: serde_json::to_string(&shown(reader, &headers)).unwrap_or_default(),
            reason: reason.as_str(),
            explanation: reason.to_string(),
            received_at,
            raw: message.payload.to_vec(),
        }),
    }
}

/// Headers of a quarantined message as they are kept: its bytes stay as they came, because they can't be read.
fn shown(reader: &Reader, headers: &[(String, String)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.clone(), reader.redact_header(name, value))).collect()
}

fn headers(message: &Message) -> Vec<(String, String)> {
    let Some(headers) = &message.headers else { return Vec::new() };
    headers
        .iter()
        .flat_map(|(name, values)| values.iter().map(move |v| (name.to_string(), v.as_str().to_owned())))
        .collect()
}
