//! What patterns and matches have in common: whether one takes all of another, or may take some. Pure.

use crate::matcher::{Glob, MatchKey, Matcher};
use crate::workflow::Workflow;

/// Whether some text fits both globs.
pub(super) fn overlap(one: &Glob, other: &Glob) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.as_str().chars().collect(), other.as_str().chars().collect());
    // `reached[n]`: the first characters of `one` that were read can fit the first `n` of `other`.
    let mut reached = vec![true];
    reached.extend(other.iter().scan(true, |all, c| {
        *all &= *c == '*';
        Some(*all)
    }));
    for a in one {
        let mut next = vec![a == '*' && reached[0]];
        for (n, b) in other.iter().enumerate() {
            let fits = if a == '*' || *b == '*' {
                // A star fits nothing, or one more character of the other.
                reached[n + 1] || next[n]
            } else {
                reached[n] && (a == *b || a == '?' || *b == '?')
            };
            next.push(fits);
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

/// Whether all that `later` fits, `earlier` fits too. Says no when in doubt.
pub(super) fn swallows(earlier: &Matcher, later: &Matcher) -> bool {
    earlier.keys().all(|(key, outer)| {
        later.globs(key).is_some_and(|inner| inner.iter().all(|i| outer.iter().any(|o| covers(o, i))))
    })
}

/// Whether a matcher can fit events of a workflow.
pub(super) fn may_fit(matcher: &Matcher, workflow: &Workflow) -> bool {
    matcher.keys().all(|(key, globs)| match key {
        MatchKey::Workflow => {
            globs.iter().any(|g| g.matches(workflow.name.as_str()) || workflow.name.matches(g.as_str()))
        }
        MatchKey::Domain => globs.iter().any(|g| g.matches(workflow.domain.as_str())),
        MatchKey::Class | MatchKey::Step | MatchKey::Downstream | MatchKey::Label(_) => true,
    })
}

/// Whether each text that `inner` stands for is one that `outer` stands for. Says no when in doubt.
pub(super) fn covers(outer: &Glob, inner: &Glob) -> bool {
    outer == inner || (outer.matches(inner.as_str()) && (inner.is_literal() || !outer.as_str().contains('?')))
}
