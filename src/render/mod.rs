//! Messages from view models: Handlebars registries by channel, Slack packing, mail, plots. Pure.
//! What is said is composed elsewhere; how it travels is `deliver`'s.

mod content;
pub mod plot;

pub use content::{Content, InlineImage, MailContent, SlackMessage};
