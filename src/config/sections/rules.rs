//! The sections of rules: routes, symptoms, silences, inhibitions, classes. Servers, people and calendars are beside this.

use super::{CLASSES, COUNT, DISPOSITIONS, POSITIVE, RECEIVERS, SHARE};
use crate::config::keys::{Defined, Form, Section, default, key, required};

const OVER_COUNT: Form = Form::Count(0, 1_000_000_000);

pub(super) static ROUTE: Section = Section::new(
    "[[routes]]",
    "Who hears of what.",
    &[
        required("name", Form::Text, "Unique."),
        required("match", Form::Match, "What it is for; {} is everything."),
        key("page", RECEIVERS, "Receivers of pages: money and compliance only."),
        key("digest", Form::MapOf(Defined::Digest, &RECEIVERS), "Receivers by digest: digest.daily = [\"ops\"]."),
        default(
            "group_by",
            Form::OneOrList(&Form::MatchKey { fingerprint: true }),
            "workflow, class",
            "What makes two failures one incident.",
        ),
        default("remind_every", Form::TimeOrNever, "4h", "Reminders until acknowledged."),
        default("resolve_after", Form::Time, "15m", "Nothing new for so long, and nothing open: resolved."),
        default("growth_every", Form::Time, "5m", "Growth messages at most this often."),
        key("escalate", Form::Tables(&ESCALATION), "Who hears when nobody acknowledges."),
        default("continue", Form::Flag, "false", "Whether later routes are looked at too."),
    ],
);

static ESCALATION: Section = Section::new(
    "escalate",
    "A step of an escalation.",
    &[required("after", Form::Period, "Time since the page."), required("to", RECEIVERS, "Who hears then.")],
);

pub(super) static SYMPTOM: Section = Section {
    title: "[[symptoms]]",
    doc: "Something that is watched.",
    keys: &[
        required("name", Form::Text, "Unique."),
        default("match", Form::Match, "{}", "For which workflows."),
        required("kind", Form::Word(SYMPTOM_KINDS), "What is watched."),
        default(
            "severity",
            Form::Word(&["page", "digest"]),
            "digest",
            "page: at once for protected workflows, first in the next digest for others.",
        ),
        default(
            "mode",
            Form::Word(&["live", "observe"]),
            "live",
            "observe records when it would have fired and tells nobody.",
        ),
    ],
    kinds: SYMPTOM_SECTIONS,
};

const SYMPTOM_KINDS: &[&str] = &[
    "burn_rate",
    "failing_streak",
    "run_failed",
    "dead_letter_age",
    "dead_letter_depth",
    "dead_letter_rate",
    "failure_trend",
    "retry_pressure",
    "absence",
    "unhealthy",
    "repeat_offender",
    "systemic",
    "breaker",
    "queue_age",
    "queue_depth",
];

static BURN_TIER: Section = Section::new(
    "tiers",
    "A tier of burn_rate.",
    &[
        required("name", Form::Text, "page_fast, page_slow, ticket_fast, ticket_slow or one's own."),
        required("burn", POSITIVE, "Factor that both windows must exceed."),
        required("long", Form::Period, "Long window."),
        required("short", Form::Period, "Short window."),
        default("severity", Form::Word(&["page", "digest"]), "digest", "How urgent."),
    ],
);

static SYMPTOM_SECTIONS: &[Section] = &[
    Section::new(
        "burn_rate",
        "The error budget is spent too fast.",
        &[
            key("slo", SHARE, "Overrides the workflow's."),
            default("period", Form::Period, "30d", "Period of the objective."),
            key("expected_per_day", COUNT, "Floor of the denominator."),
            key("tiers", Form::Tables(&BURN_TIER), "Replace the four default tiers."),
            key("min_failures", COUNT, "Fewest failures: 2 for page tiers, 1 for the others unless given."),
        ],
    ),
    Section::new(
        "failing_streak",
        "The last outcomes all failed.",
        &[default("count", COUNT, "5", "How many."), default("over", Form::Time, "5m", "Over at least this long.")],
    ),
    Section::new("run_failed", "The last finished run failed.", &[]),
    Section::new(
        "dead_letter_age",
        "The oldest unresolved dead letter is too old.",
        &[key("over", Form::Period, "Older than this: 1h for protected workflows, 24h for others unless given.")],
    ),
    Section::new(
        "dead_letter_depth",
        "Too many unresolved dead letters.",
        &[default("over", OVER_COUNT, "10", "More than this.")],
    ),
    Section::new(
        "dead_letter_rate",
        "Too many dead letters arrived.",
        &[required("over", OVER_COUNT, "More than this."), required("window", Form::Period, "In so long.")],
    ),
    Section::new(
        "failure_trend",
        "Failures are well above the baseline of that hour of the week.",
        &[
            default("factor", Form::Decimal(1.0, f64::MAX), "3", "Times the baseline."),
            default("window", Form::Period, "1h", "Measured over this long."),
        ],
    ),
    Section::new(
        "retry_pressure",
        "Too many retries per finished operation.",
        &[
            default("over", POSITIVE, "2.0", "More than this."),
            default("window", Form::Period, "1h", "Measured over this long."),
        ],
    ),
    Section::new("absence", "Nothing heard for every + grace of the workflow.", &[]),
    Section::new(
        "unhealthy",
        "The last heartbeat says so.",
        &[default("for", Form::Time, "5m", "How long degraded may last.")],
    ),
    Section::new(
        "repeat_offender",
        "One workflow has most of the last dead letters.",
        &[default("count", COUNT, "3", "So many …"), default("of", COUNT, "20", "… of the last so many.")],
    ),
    Section::new(
        "systemic",
        "One downstream or error type hits several workflows.",
        &[
            default("count", COUNT, "3", "So many workflows."),
            default("window", Form::Period, "15m", "Within this long."),
        ],
    ),
    Section::new(
        "breaker",
        "A downstream fails most of its calls.",
        &[
            default("ratio", Form::Decimal(0.0, 1.000_000_1), "0.5", "Share that fails."),
            default("of", COUNT, "10", "Of the last so many calls."),
        ],
    ),
    Section::new("queue_age", "A watched queue is too old.", &[required("over", Form::Period, "Older than this.")]),
    Section::new("queue_depth", "A watched queue is too deep.", &[required("over", OVER_COUNT, "More than this.")]),
];

pub(super) static SILENCE: Section = Section::new(
    "[[silences]]",
    "What nobody is to be told for a while.",
    &[
        required("match", Form::Match, "What it hides."),
        required("until", Form::Instant, "When it ends, with an offset; at most 30 days ahead."),
        required("reason", Form::Text, "Why."),
        required("by", Form::Text, "Who asked for it."),
        default(
            "protected",
            Form::Flag,
            "false",
            "Whether it hides money and compliance workflows; then at most 24 h ahead.",
        ),
    ],
);

pub(super) static INHIBIT: Section = Section::new(
    "[[inhibit]]",
    "What is not told while something else is open.",
    &[
        required("source", Form::Match, "What is open …"),
        required("target", Form::Match, "… hides this …"),
        key("equal", Form::OneOrList(&Form::MatchKey { fingerprint: false }), "… when these keys agree."),
    ],
);

pub(super) static CLASSIFY: Section = Section::new(
    "[[classify]]",
    "A rule that gives a class.",
    &[
        required("name", Form::Text, "Unique; explain names it."),
        required("match", Form::Table(&CLASSIFY_MATCH), "What it looks at; all keys must match."),
        required("class", Form::Word(CLASSES), "The class that it gives."),
        key("disposition", Form::Word(DISPOSITIONS), "The disposition that it gives, unless the event says one."),
        key("workflow", Form::Text, "The workflow that it moves the event to."),
    ],
);

static CLASSIFY_MATCH: Section = Section::new(
    "match of [[classify]]",
    "What a rule looks at.",
    &[
        key("workflow", Form::OneOrList(&Form::Text), "Globs of the workflow."),
        key("step", Form::OneOrList(&Form::Text), "Globs of the step."),
        key("downstream", Form::OneOrList(&Form::Text), "Globs of the dependency."),
        key("error_type", Form::OneOrList(&Form::Text), "Globs of error.type."),
        key("error_code", Form::OneOrList(&Form::Text), "Globs of error.code."),
        key("http_status", Form::OneOrList(&Form::Text), "Globs of error.http_status, as text: \"50?\"."),
        key("message", Form::OneOrList(&Form::Text), "Globs of error.message."),
        key("message_regex", Form::Regex, "A regular expression on error.message."),
    ],
);
