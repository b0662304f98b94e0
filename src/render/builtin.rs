//! The templates that come with Matins, and the partials that they share. How they are run is not known here.

macro_rules! templates {
    ($($folder:literal),+ $(,)?) => {
        &[$(
            (concat!($folder, "/slack.hbs"), include_str!(concat!("../../templates/", $folder, "/slack.hbs"))),
            (concat!($folder, "/subject.hbs"), include_str!(concat!("../../templates/", $folder, "/subject.hbs"))),
            (concat!($folder, "/text.hbs"), include_str!(concat!("../../templates/", $folder, "/text.hbs"))),
            (concat!($folder, "/html.hbs"), include_str!(concat!("../../templates/", $folder, "/html.hbs"))),
        )+]
    };
}

/// Name below `templates/` and text of every built-in template.
const FILES: &[(&str, &str)] = templates!(
    "page",
    "reminder",
    "escalation",
    "resolved",
    "operator",
    "digest-hourly",
    "digest-daily",
    "digest-weekly",
);

/// Partials that any template may use, by name. They are part of the program and can't be replaced.
pub(super) const PARTIALS: &[(&str, &str)] = &[
    ("mail", include_str!("../../templates/_mail.hbs")),
    ("digest-actions", include_str!("../../templates/_digest/actions.hbs")),
    ("digest-budgets", include_str!("../../templates/_digest/budgets.hbs")),
    ("digest-closed", include_str!("../../templates/_digest/closed.hbs")),
    ("digest-contact", include_str!("../../templates/_digest/contact.hbs")),
    ("digest-dead-letters", include_str!("../../templates/_digest/dead-letters.hbs")),
    ("digest-footer", include_str!("../../templates/_digest/footer.hbs")),
    ("digest-head", include_str!("../../templates/_digest/head.hbs")),
    ("digest-healed", include_str!("../../templates/_digest/healed.hbs")),
    ("digest-heard", include_str!("../../templates/_digest/heard.hbs")),
    ("digest-heat", include_str!("../../templates/_digest/heat.hbs")),
    ("digest-known", include_str!("../../templates/_digest/known.hbs")),
    ("digest-more", include_str!("../../templates/_digest/more.hbs")),
    ("digest-needs-you", include_str!("../../templates/_digest/needs-you.hbs")),
    ("digest-new-and-back", include_str!("../../templates/_digest/new-and-back.hbs")),
    ("digest-notes", include_str!("../../templates/_digest/notes.hbs")),
    ("digest-numbers", include_str!("../../templates/_digest/numbers.hbs")),
    ("digest-patterns", include_str!("../../templates/_digest/patterns.hbs")),
    ("digest-plot", include_str!("../../templates/_digest/plot.hbs")),
    ("digest-plots", include_str!("../../templates/_digest/plots.hbs")),
    ("digest-section", include_str!("../../templates/_digest/section.hbs")),
    ("digest-slack-actions", include_str!("../../templates/_digest/slack-actions.hbs")),
    ("digest-slack-budgets", include_str!("../../templates/_digest/slack-budgets.hbs")),
    ("digest-slack-end", include_str!("../../templates/_digest/slack-end.hbs")),
    ("digest-slack-head", include_str!("../../templates/_digest/slack-head.hbs")),
    ("digest-slack-known", include_str!("../../templates/_digest/slack-known.hbs")),
    ("digest-slack-news", include_str!("../../templates/_digest/slack-news.hbs")),
    ("digest-slack-numbers", include_str!("../../templates/_digest/slack-numbers.hbs")),
    ("digest-slack-patterns", include_str!("../../templates/_digest/slack-patterns.hbs")),
    ("digest-strategies", include_str!("../../templates/_digest/strategies.hbs")),
    ("digest-text-actions", include_str!("../../templates/_digest/text-actions.hbs")),
    ("digest-text-budgets", include_str!("../../templates/_digest/text-budgets.hbs")),
    ("digest-text-end", include_str!("../../templates/_digest/text-end.hbs")),
    ("digest-text-footer", include_str!("../../templates/_digest/text-footer.hbs")),
    ("digest-text-head", include_str!("../../templates/_digest/text-head.hbs")),
    ("digest-text-healed", include_str!("../../templates/_digest/text-healed.hbs")),
    ("digest-text-known", include_str!("../../templates/_digest/text-known.hbs")),
    ("digest-text-letters", include_str!("../../templates/_digest/text-letters.hbs")),
    ("digest-text-news", include_str!("../../templates/_digest/text-news.hbs")),
    ("digest-text-numbers", include_str!("../../templates/_digest/text-numbers.hbs")),
    ("digest-text-patterns", include_str!("../../templates/_digest/text-patterns.hbs")),
    ("digest-text-workflows", include_str!("../../templates/_digest/text-workflows.hbs")),
    ("digest-to-look-at", include_str!("../../templates/_digest/to-look-at.hbs")),
    ("digest-workflows", include_str!("../../templates/_digest/workflows.hbs")),
    ("digest-workflows-by-week", include_str!("../../templates/_digest/workflows-by-week.hbs")),
];

/// Name below `templates/` (`page/slack.hbs`) and text of every built-in template: what `matins templates export` writes.
pub fn builtin_files() -> &'static [(&'static str, &'static str)] {
    FILES
}
