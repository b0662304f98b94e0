//! Faults of templates that are found before a message is due: what they are, and those of a file by itself. Names that
//! no view has are found in `names`, templates that fail on a sample in `engine`.

use super::builtin;
use handlebars::template::{Parameter, TemplateElement};
use handlebars::{Handlebars, RenderError, Template, TemplateError};
use serde_json::Value;

/// What is wrong with a template, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateProblem {
    /// Name below the template folder: `page/slack.hbs`.
    pub file: String,
    /// 1-based.
    pub line: Option<usize>,
    /// 1-based.
    pub column: Option<usize>,
    /// One sentence, with a near name when there is one.
    pub what: String,
}

impl std::fmt::Display for TemplateProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl TemplateProblem {
    pub(super) fn of_file(file: &str, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, column: None, what: what.into() }
    }

    pub(super) fn of_parse(file: &str, error: &TemplateError) -> Self {
        let (line, column) = error.pos().unzip();
        Self { file: file.to_owned(), line, column, what: words(&error.reason().to_string()) }
    }

    pub(super) fn of_render(file: &str, error: &RenderError) -> Self {
        let what = words(&error.reason().to_string());
        let file = error.template_name.as_deref().filter(|name| name.contains('/')).unwrap_or(file);
        Self { file: file.to_owned(), line: error.line_no, column: error.column_no, what }
    }
}

/// The first line of what the library says.
fn words(reason: &str) -> String {
    let line = reason.lines().find(|l| l.contains(|c: char| c.is_alphabetic())).unwrap_or("it can't be used");
    line.trim().to_owned()
}

/// A view to try templates with.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Folder of its template.
    pub template: String,
    /// What is special about it: `full`, `hostile` …
    pub name: &'static str,
    /// What a template sees, before escaping.
    pub view: Value,
    /// Whether it holds every name that a view of this template can have: names outside of it are unknown.
    pub is_full: bool,
}

/// The folder whose templates write `folder` when it has none of its own.
pub(super) fn stand_in(folder: &str) -> &'static str {
    if folder.starts_with("digest") { "digest-daily" } else { "operator" }
}

/// Name of the template that writes `folder`: its own, else that of its stand-in.
pub(super) fn template_name(registry: &Handlebars<'_>, folder: &str, file: &str) -> String {
    let own = format!("{folder}/{file}");
    if registry.has_template(&own) { own } else { format!("{}/{file}", stand_in(folder)) }
}

/// Parses a template that replaces a built-in one, or writes a digest of one's own.
pub(super) fn parse_override(name: &str, text: &str) -> Result<Template, TemplateProblem> {
    let (folder, file) = name.split_once('/').unwrap_or((name, ""));
    let known = |n: &str| builtin::builtin_files().iter().any(|(known, _)| *known == n);
    let own_digest = folder.starts_with("digest-") && known(&format!("digest-daily/{file}"));
    if !(known(name) || own_digest) {
        let names = builtin::builtin_files().iter().map(|(known, _)| *known);
        return Err(TemplateProblem::of_file(
            name,
            format!("no message has such a template{}", did_you_mean(name, names)),
        ));
    }
    let template =
        Template::compile_with_name(text, name.to_owned()).map_err(|e| TemplateProblem::of_parse(name, &e))?;
    match foreign_partial(&template) {
        Some(partial) => {
            Err(TemplateProblem::of_file(name, format!("`{partial}` is no partial that a template may use")))
        }
        None => Ok(template),
    }
}

/// A partial that is not one of ours, or is defined in the template: two that name each other would never end.
fn foreign_partial(template: &Template) -> Option<String> {
    template.elements.iter().find_map(|element| match element {
        TemplateElement::PartialExpression(d) | TemplateElement::PartialBlock(d) => {
            let name = parameter_name(&d.name);
            let ours = name == "@partial-block" || builtin::PARTIALS.iter().any(|(known, _)| *known == name);
            if ours { d.template.as_ref().and_then(foreign_partial) } else { Some(name) }
        }
        TemplateElement::DecoratorExpression(d) | TemplateElement::DecoratorBlock(d) => Some(parameter_name(&d.name)),
        TemplateElement::HelperBlock(h) => [&h.template, &h.inverse].into_iter().flatten().find_map(foreign_partial),
        // The library may add elements; those that hold templates are the ones above.
        TemplateElement::RawString(_)
        | TemplateElement::HtmlExpression(_)
        | TemplateElement::Expression(_)
        | TemplateElement::Comment(_)
        | _ => None,
    })
}

pub(super) fn parameter_name(parameter: &Parameter) -> String {
    parameter.as_name().unwrap_or("(…)").to_owned()
}

pub(super) fn did_you_mean<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = names.map(|name| (strsim::damerau_levenshtein(word, name), name)).min();
    match near {
        Some((distance, name)) if distance <= 2 + word.len() / 5 => format!("; did you mean `{name}`?"),
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::render::{Renderer, Sample};
    use serde_json::json;

    fn found(text: &str) -> Vec<String> {
        let view = json!({"number": 1, "workflow": "pay", "error": {"message": "m", "type": "t"},
            "links": [{"name": "n", "url": "https://x"}], "runbook": "https://r"});
        let (renderer, problems) = Renderer::new(&[("page/slack.hbs".to_owned(), text.to_owned())]);
        let sample = Sample { template: "page".to_owned(), name: "full", view, is_full: true };
        let checked = renderer.check(&[sample]);
        problems.iter().chain(&checked).filter(|p| p.file == "page/slack.hbs").map(ToString::to_string).collect()
    }

    #[test]
    fn a_misspelt_name_is_found_with_its_line_and_a_near_name() {
        assert_eq!(
            found("# page\n{{error.mesage}}"),
            ["page/slack.hbs:2:1: unknown name `mesage` in `error.mesage`; did you mean `message`?"]
        );
    }

    #[test]
    fn a_misspelt_name_in_a_condition_or_a_list_is_found() {
        assert_eq!(
            found("{{#if eror.x}}will retry{{/if}} x"),
            ["page/slack.hbs:1:1: unknown name `eror` in `eror.x`; did you mean `error`?"]
        );
        assert_eq!(
            found("{{#each link}}x{{/each}} x"),
            ["page/slack.hbs:1:1: unknown name `link`; did you mean `links`?"]
        );
        assert_eq!(
            found("{{#each links}}\n{{#unless nme}}x{{/unless}}{{/each}}x"),
            ["page/slack.hbs:2:1: unknown name `nme`; did you mean `name`?"]
        );
        assert!(found("{{#if (and workflow eror)}}x{{/if}} x")[0].contains("unknown name `eror`"));
    }

    #[test]
    fn names_of_lists_parents_and_the_root_are_known() {
        let text = "{{#each links as |l i|}}{{l.name}}{{i}}{{this.url}}{{@index}}{{../workflow}}{{@root.error.type}}\
            {{#if @first}}x{{/if}}{{/each}}{{#with error}}{{message}}{{../runbook}}{{/with}}{{links.[0].name}}";
        assert_eq!(found(text), Vec::<String>::new());
    }

    #[test]
    fn a_partial_that_is_not_handed_what_it_needs_is_found() {
        let (renderer, _) =
            Renderer::new(&[("page/html.hbs".to_owned(), "{{#> mail heading=workflow}}x{{/mail}}".to_owned())]);
        let view = json!({"workflow": "pay"});
        let sample = Sample { template: "page".to_owned(), name: "full", view, is_full: true };
        let problems = renderer.check(&[sample]);
        assert!(problems.iter().any(|p| p.what.contains("unknown name `preheader`")), "{problems:?}");
    }

    #[test]
    fn broken_syntax_unknown_helpers_and_unknown_files_are_found() {
        assert!(found("{{#if workflow}}x {{workflow}\n{{number}}")[0].starts_with("page/slack.hbs:"));
        assert!(found("{{#iff workflow}}x{{/iff}}")[0].contains("no helper is called `iff`; did you mean `if`?"));
        let (_, problems) = Renderer::new(&[("pages/slack.hbs".to_owned(), "x".to_owned())]);
        assert!(problems[0].what.ends_with("did you mean `page/slack.hbs`?"), "{}", problems[0]);
    }

    #[test]
    fn templates_can_not_include_each_other_without_end() {
        assert!(found("{{> reminder/slack.hbs}}")[0].contains("is no partial that a template may use"));
        assert!(found("{{#*inline \"a\"}}{{> a}}{{/inline}}{{> a}}")[0].contains("is no partial"));
    }
}
