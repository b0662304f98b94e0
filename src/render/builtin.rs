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
pub(super) const PARTIALS: &[(&str, &str)] = &[("mail", include_str!("../../templates/_mail.hbs"))];

/// Name below `templates/` (`page/slack.hbs`) and text of every built-in template: what `matins templates export` writes.
pub fn builtin_files() -> &'static [(&'static str, &'static str)] {
    FILES
}
