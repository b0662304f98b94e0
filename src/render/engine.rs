//! Templates to messages: the built-in ones, those that replace them, and what is said when both fail.
//! What a message says is composed elsewhere; what is checked before a message is due lives in `lint`.

use super::builtin;
use super::content::{Content, InlineImage, MailContent};
use super::escape::{Flavour, escape_view};
use super::lint::{self, TemplateProblem};
use super::splice::splice;
use super::{mail, names, plain, slack};
use crate::deliver::Channel;
use handlebars::{Context, Handlebars, RenderError, Template, no_escape};
use serde_json::Value;
use std::io;
use std::sync::LazyLock;

/// A template that writes more than this is taken for broken.
const OUTPUT_MAX: usize = 1 << 20;

/// What a mail needs beside its words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MailFrame {
    /// See [`MailContent::message_id`].
    pub message_id: String,
    /// See [`MailContent::references`].
    pub references: Vec<String>,
    /// See [`MailContent::list_id`].
    pub list_id: String,
    /// Pictures that the HTML part shows by `cid:`.
    pub images: Vec<InlineImage>,
}

/// A message, and what was wrong with the template that should have written it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// What to send; there is always something to send.
    pub content: Content,
    /// The first template that failed; the message was then written by the built-in one, or by plain code.
    pub problem: Option<TemplateProblem>,
}

/// Every template, parsed once. Rendering can't fail.
#[derive(Debug)]
pub struct Renderer {
    own: Handlebars<'static>,
    parts: Parts,
}

/// Which parts of messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// All that a receiver is sent.
    All,
    /// What a person reads of it: the subject of a mail, and plain text. Markup and pictures take longer than all the rest.
    Words,
}

/// The built-in templates, and what is wrong with them: nothing, as a test says.
static BUILTIN: LazyLock<(Handlebars<'static>, Vec<TemplateProblem>)> = LazyLock::new(|| {
    let mut registry = Handlebars::new();
    registry.set_strict_mode(true);
    // Values are escaped before a template sees them, so triple braces and double ones are the same.
    registry.register_escape_fn(no_escape);
    let mut problems = Vec::new();
    // The partials first: templates are made of them.
    for (name, text) in builtin::PARTIALS.iter().chain(builtin::builtin_files()) {
        match Template::compile_with_name(text, (*name).to_owned()) {
            Ok(template) => {
                let whole = splice(&template, &registry);
                registry.register_template(name, whole);
            }
            Err(error) => problems.push(TemplateProblem::of_parse(name, &error)),
        }
    }
    (registry, problems)
});

impl Renderer {
    /// Parses the built-in templates and what replaces them: name below the template folder (`page/slack.hbs`) and text.
    /// A replacement that can't be used is reported, and the built-in template of that name stays.
    pub fn new(overrides: &[(String, String)]) -> (Self, Vec<TemplateProblem>) {
        let (builtin, mut problems) = (BUILTIN.0.clone(), BUILTIN.1.clone());
        let mut renderer = Self { own: builtin, parts: Parts::All };
        for (name, text) in overrides {
            match lint::parse_override(name, text) {
                Ok(template) => {
                    let whole = splice(&template, &renderer.own);
                    renderer.own.register_template(name, whole);
                }
                Err(problem) => problems.push(problem),
            }
        }
        (renderer, problems)
    }

    /// The same, for who wants these parts alone.
    pub fn with_parts(self, parts: Parts) -> Self {
        Self { parts, ..self }
    }

    /// Whether messages for `channel` show pictures.
    pub fn draws(&self, channel: Channel) -> bool {
        self.parts == Parts::All && channel == Channel::Email
    }

    /// What is kept of a view beside the words made from it: nobody asks for other words where words are all that is wanted.
    pub fn kept(&self, view: &Value) -> Value {
        match self.parts {
            Parts::All => view.clone(),
            Parts::Words => Value::Null,
        }
    }

    /// The channel, or plain text where words are all that is wanted of it.
    fn channel(&self, channel: Channel) -> Channel {
        match (self.parts, channel) {
            (Parts::Words, Channel::Slack | Channel::Json) => Channel::Text,
            (Parts::All | Parts::Words, channel) => channel,
        }
    }

    /// Writes the message of `template` (a folder: `page`, `digest-daily` …) for `channel`. A digest without a folder of
    /// its own is written by `digest-daily`. A template that fails costs its look, never the message.
    pub fn render(&self, template: &str, channel: Channel, view: &Value, frame: &MailFrame) -> Rendered {
        self.render_last(template, channel, view.clone(), frame)
    }

    /// The same, for a view that nobody needs any more.
    pub fn render_last(&self, template: &str, channel: Channel, view: Value, frame: &MailFrame) -> Rendered {
        let mut problem = None;
        let mut write = |flavour, view| {
            let (text, found) = self.write(template, flavour, view);
            problem = problem.take().or(found);
            text
        };
        let content = match self.channel(channel) {
            Channel::Json => Content::Json(view),
            Channel::Text => Content::Text(mail::wrap(&write(Flavour::Text, view))),
            Channel::Slack => {
                let notice = escape_view(view["notice"].clone(), Flavour::Slack);
                Content::Slack(slack::pack(&write(Flavour::Slack, view), notice.as_str().unwrap_or_default()))
            }
            Channel::Email => {
                let subject = write(Flavour::Subject, view.clone());
                let (text, html) = match self.parts {
                    Parts::All => (write(Flavour::Text, view.clone()), write(Flavour::Html, view)),
                    Parts::Words => (write(Flavour::Text, view), String::new()),
                };
                Content::Email(MailContent {
                    subject: mail::subject(&subject),
                    text: mail::wrap(&text),
                    html,
                    message_id: frame.message_id.clone(),
                    references: frame.references.clone(),
                    list_id: frame.list_id.clone(),
                    images: frame.images.clone(),
                })
            }
        };
        Rendered { content, problem }
    }

    /// Renders every template against every sample, and compares the names that templates use with those that exist.
    pub fn check(&self, samples: &[lint::Sample]) -> Vec<TemplateProblem> {
        let mut problems = names::unknown_names(&self.own, samples);
        for sample in samples {
            for flavour in Flavour::ALL {
                let name = self.name(&sample.template, flavour);
                let context = Context::from(escape_view(sample.view.clone(), flavour));
                let Err(mut problem) = try_write(&self.own, &name, &context) else { continue };
                // One sentence a place: the same fault shows with every sample.
                let place = |p: &TemplateProblem| (p.file.clone(), p.line, p.column);
                if problems.iter().all(|known| place(known) != place(&problem)) {
                    problem.what = format!("{} (with the sample `{}`)", problem.what, sample.name);
                    problems.push(problem);
                }
            }
        }
        problems.sort();
        problems.dedup();
        problems
    }

    fn write(&self, template: &str, flavour: Flavour, view: Value) -> (String, Option<TemplateProblem>) {
        let context = Context::from(escape_view(view, flavour));
        let first = match try_write(&self.own, &self.name(template, flavour), &context) {
            Ok(text) => return (text, None),
            Err(problem) => problem,
        };
        let name = self.name(builtin_folder(template), flavour);
        let text = try_write(&BUILTIN.0, &name, &context);
        (text.unwrap_or_else(|_| plain::write(context.data(), flavour)), Some(first))
    }

    /// Name of the template that writes `folder`.
    fn name(&self, folder: &str, flavour: Flavour) -> String {
        lint::template_name(&self.own, folder, flavour.file())
    }
}

/// The built-in folder that stands in for `folder`.
fn builtin_folder(folder: &str) -> &str {
    let known = builtin::builtin_files().iter().any(|(name, _)| name.split('/').next() == Some(folder));
    if known { folder } else { lint::stand_in(folder) }
}

fn try_write(registry: &Handlebars<'_>, name: &str, context: &Context) -> Result<String, TemplateProblem> {
    let mut out = Capped(Vec::new());
    let done: Result<(), RenderError> = registry.render_with_context_to_write(name, context, &mut out);
    done.map_err(|error| TemplateProblem::of_render(name, &error))?;
    let text = String::from_utf8_lossy(&out.0).into_owned();
    if text.trim().is_empty() {
        return Err(TemplateProblem::of_file(name, "it writes nothing"));
    }
    Ok(text)
}

/// Refuses to grow without end.
struct Capped(Vec<u8>);

impl io::Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_MAX {
            return Err(io::Error::other("the template writes more than 1 MiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
