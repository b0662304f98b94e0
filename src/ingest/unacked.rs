//! What was delivered and not acked when a process was killed or a connection lost: JetStream sends it again only after `ack_wait`, and a
//! page must not wait for that. So it is read beside the consumer, and told apart from news by whoever commits it. It is acked when it
//! comes again. One process reads a durable; were there several, what another has in hand would be read here as well.

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, Info, pull};
use async_nats::jetstream::stream::Stream;
use futures_util::TryStreamExt as _;
use std::ops::Range;
use std::time::Duration;
use tokio::time::timeout;

/// A consumer that nobody reads from goes away after this.
const UNUSED_FOR: Duration = Duration::from_secs(10);

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Sequences that were delivered, of which some are not acked and none was committed. `read_until` is the last that was.
pub(super) fn unacked(consumer: &Info, read_until: i64) -> Range<u64> {
    let first = consumer.ack_floor.stream_sequence.max(read_until.max(0).unsigned_abs()) + 1;
    let end = consumer.delivered.stream_sequence + 1;
    if consumer.num_ack_pending == 0 { first..first } else { first..end.max(first) }
}

/// New messages wait meanwhile, and a missing permission looks like a server that is slow.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// How much is read at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub messages: usize,
    /// Of payload, exceeded by one message at most.
    pub bytes: usize,
}

/// Reads some messages of the stream in order; what is gone is left out.
///
/// # Errors
/// When JetStream does not answer in time or refuses a consumer.
pub(super) async fn read(stream: &Stream, sequences: Range<u64>, limits: Limits) -> Result<Vec<Message>, Error> {
    timeout(READ_TIMEOUT, try_read(stream, sequences, limits)).await?
}

async fn try_read(stream: &Stream, sequences: Range<u64>, limits: Limits) -> Result<Vec<Message>, Error> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: sequences.start },
        ack_policy: AckPolicy::None,
        inactive_threshold: UNUSED_FOR,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await?;
    let count = usize::try_from(sequences.end - sequences.start).unwrap_or(limits.messages).min(limits.messages);
    let mut coming = consumer.fetch().max_messages(count).messages().await?;
    let (mut messages, mut bytes) = (Vec::with_capacity(count), 0);
    while bytes < limits.bytes
        && let Some(message) = coming.try_next().await?
    {
        bytes += message.payload.len();
        if message.info().is_ok_and(|info| sequences.contains(&info.stream_sequence)) {
            messages.push(message);
        }
    }
    // One that stays goes away by itself.
    let _ = stream.delete_consumer(&consumer.cached_info().name).await;
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn info(floor: u64, delivered: u64, pending: usize) -> Info {
        let place = |sequence: u64| json!({ "consumer_seq": sequence, "stream_seq": sequence });
        serde_json::from_value(json!({ "stream_name": "S", "name": "matins", "created": "2026-12-01T00:00:00Z",
            "config": { "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant" },
            "delivered": place(delivered), "ack_floor": place(floor), "num_ack_pending": pending, "num_redelivered": 0, "num_waiting": 0,
            "num_pending": 0 }))
        .unwrap()
    }

    #[test]
    fn what_was_delivered_after_the_last_that_was_committed_is_unacked() {
        assert_eq!(unacked(&info(10, 15, 5), 12), 13..16);
        assert_eq!(unacked(&info(10, 15, 5), 0), 11..16);
    }

    #[test]
    fn nothing_is_when_all_is_acked_or_committed() {
        assert!(unacked(&info(15, 15, 0), 15).is_empty());
        assert!(unacked(&info(10, 15, 5), 15).is_empty());
        assert!(unacked(&info(10, 15, 5), 400).is_empty());
        assert!(unacked(&info(0, 0, 0), 0).is_empty());
    }
}
