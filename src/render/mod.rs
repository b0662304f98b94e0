//! Messages from view models: Handlebars registries by channel, Slack packing, mail, plots. Pure.
//! What is said is composed elsewhere; how it travels is `deliver`'s.

mod builtin;
mod content;
mod engine;
mod escape;
mod lint;
mod mail;
mod plain;
pub mod plot;
mod slack;
pub mod words;

pub use builtin::builtin_files;
pub use content::{Content, InlineImage, MailContent, SlackMessage};
pub use engine::{MailFrame, Rendered, Renderer};
pub use escape::web_address;
pub use lint::{Sample, TemplateProblem};
