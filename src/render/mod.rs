//! Messages from view models: Handlebars registries by channel, Slack packing, mail, plots. Pure.
//! What is said is composed elsewhere; how it travels is `deliver`'s.

mod builtin;
mod content;
mod engine;
mod escape;
mod lint;
mod mail;
mod names;
mod operator_view;
mod page_facts;
mod page_view;
mod page_words;
mod plain;
pub mod plot;
mod sample;
mod slack;
mod splice;
#[cfg(test)]
mod tests;
pub mod words;

pub use builtin::builtin_files;
pub use content::{Content, InlineImage, MailContent, SlackMessage};
pub use engine::{MailFrame, Parts, Rendered, Renderer};
pub use escape::{escape_html, web_address};
pub use lint::{Sample, TemplateProblem};
pub use names::field_names;
pub use operator_view::{OperatorFacts, OperatorView};
pub use page_facts::{Acknowledgement, FailureSample, NextEscalation, PageFacts, PageKind, PagedWorkflow, Resolution};
pub use page_view::{
    AcknowledgedView, CountsView, ErrorView, LinkView, PageView, PagedWorkflowView, ResolutionView, TextView,
};
pub use page_words::sentence as page_sentence;
pub use sample::page_samples;
