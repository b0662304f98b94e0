//! Whether intake works: it reads and it commits, and what is wrong with either is said until that is right again.

use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;
use tracing::{info, warn};

/// Whether intake works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet, or not any more; why.
    NotReady(String),
    /// It reads, commits and acks.
    Ready,
}

/// What can be wrong apart from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Reading,
    Committing,
}

/// What is wrong now, and where that is shown.
#[derive(Debug)]
pub struct Health {
    shown: watch::Sender<Readiness>,
    wrong: Mutex<Wrong>,
}

#[derive(Debug)]
struct Wrong {
    reading: Option<String>,
    committing: Option<String>,
}

impl Health {
    /// Nothing is read yet, as `shown` says.
    pub fn new(shown: watch::Sender<Readiness>) -> Self {
        let reading = match &*shown.borrow() {
            Readiness::NotReady(why) => Some(why.clone()),
            Readiness::Ready => None,
        };
        Self { shown, wrong: Mutex::new(Wrong { reading, committing: None }) }
    }

    /// A part does not work.
    pub(super) fn fails(&self, part: Part, why: &str) {
        self.set(part, Some(why.to_owned()));
    }

    /// A part works.
    pub(super) fn works(&self, part: Part) {
        self.set(part, None);
    }

    fn set(&self, part: Part, why: Option<String>) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        match part {
            Part::Reading => wrong.reading = why,
            Part::Committing => wrong.committing = why,
        }
        let next = match wrong.committing.as_ref().or(wrong.reading.as_ref()) {
            Some(why) => Readiness::NotReady(why.clone()),
            None => Readiness::Ready,
        };
        let changed = self.shown.send_if_modified(|now| {
            let changed = *now != next;
            now.clone_from(&next);
            changed
        });
        match (changed, next) {
            (false, _) => {}
            (true, Readiness::Ready) => info!("intake works"),
            (true, Readiness::NotReady(why)) => warn!(why, "intake does not work now; trying again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_that_works_again_does_not_hide_what_is_wrong_with_the_other() {
        let (sender, shown) = watch::channel(Readiness::NotReady("starting".to_owned()));
        let health = Health::new(sender);
        health.works(Part::Reading);
        assert_eq!(*shown.borrow(), Readiness::Ready);
        health.fails(Part::Committing, "the disk is full");
        health.fails(Part::Reading, "NATS is silent");
        health.works(Part::Reading);
        assert_eq!(*shown.borrow(), Readiness::NotReady("the disk is full".to_owned()));
        health.works(Part::Committing);
        assert_eq!(*shown.borrow(), Readiness::Ready);
    }
}
