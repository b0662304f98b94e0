//! Faults of templates that are found before a message is due: syntax, names that no view has, templates that fail on
//! some sample. Strict mode alone would miss a misspelt name in `{{#if}}` and `{{#each}}`.

use super::builtin;
use handlebars::template::{BlockParam, DecoratorTemplate, HelperTemplate, Parameter, TemplateElement};
use handlebars::{Handlebars, Path, RenderError, Template, TemplateError};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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

fn parameter_name(parameter: &Parameter) -> String {
    parameter.as_name().unwrap_or("(…)").to_owned()
}

fn did_you_mean<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = names.map(|name| (strsim::damerau_levenshtein(word, name), name)).min();
    match near {
        Some((distance, name)) if distance <= 2 + word.len() / 5 => format!("; did you mean `{name}`?"),
        Some(_) | None => String::new(),
    }
}

/// Every name in a template of `registry` that no full sample of its folder has.
pub(super) fn unknown_names(registry: &Handlebars<'_>, samples: &[Sample]) -> Vec<TemplateProblem> {
    let schemas = schemas(samples);
    let mut problems = Vec::new();
    let mut names: Vec<&String> = registry.get_templates().keys().filter(|n| n.contains('/')).collect();
    names.sort();
    for name in names {
        let folder = name.split('/').next().unwrap_or_default();
        let schema = schemas.get(folder).or_else(|| schemas.get(stand_in(folder)));
        let (Some(template), Some(schema)) = (registry.get_template(name), schema) else { continue };
        let mut walk = Walk { registry, file: name, root: schema, at: (None, None), problems: &mut problems };
        walk.template(template, &Scope::root(schema));
    }
    problems
}

/// Every name that templates of a folder may use, from the full samples: `error.message`, `links[].url`.
pub fn field_names(samples: &[Sample]) -> BTreeMap<String, Vec<String>> {
    let mut names = BTreeMap::new();
    for (folder, schema) in schemas(samples) {
        let mut paths = Vec::new();
        list_paths(&schema, "", &mut paths);
        names.insert(folder.to_owned(), paths);
    }
    names
}

fn list_paths(schema: &Value, path: &str, paths: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                list_paths(value, &format!("{path}{dot}{name}"), paths);
            }
        }
        Value::Array(items) => list_paths(items.first().unwrap_or(&Value::Null), &format!("{path}[]"), paths),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => paths.push(path.to_owned()),
    }
}

/// Names by folder, from the full samples.
fn schemas(samples: &[Sample]) -> BTreeMap<&str, Value> {
    let mut schemas = BTreeMap::new();
    for sample in samples.iter().filter(|s| s.is_full) {
        merge(schemas.entry(sample.template.as_str()).or_insert(Value::Null), &sample.view);
    }
    schemas
}

/// Adds the names of `view` to `schema`; an array becomes one element that has the names of all.
fn merge(schema: &mut Value, view: &Value) {
    match view {
        Value::Object(fields) => {
            if !schema.is_object() {
                *schema = Value::Object(Map::new());
            }
            if let Value::Object(known) = schema {
                for (key, value) in fields {
                    merge(known.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        Value::Array(items) => {
            let mut element = schema.get(0).cloned().unwrap_or(Value::Null);
            items.iter().for_each(|item| merge(&mut element, item));
            *schema = Value::Array(vec![element]);
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => *schema = view.clone(),
    }
}

/// What names mean at a place of a template. `None` stands for a value whose names are not known.
#[derive(Clone)]
struct Scope<'s> {
    /// Values that `this`, `../this`, `../../this` stand for, innermost last.
    stack: Vec<Option<&'s Value>>,
    /// Names given by `as |name|`.
    given: BTreeMap<String, Option<&'s Value>>,
}

impl<'s> Scope<'s> {
    fn root(schema: &'s Value) -> Self {
        Self { stack: vec![Some(schema)], given: BTreeMap::new() }
    }

    fn with(&self, given: &[(String, Option<&'s Value>)]) -> Self {
        let mut inner = self.clone();
        inner.given.extend(given.iter().cloned());
        inner
    }

    fn inside(&self, value: Option<&'s Value>, given: &[(String, Option<&'s Value>)]) -> Self {
        let mut inner = self.clone();
        inner.stack.push(value);
        inner.given.extend(given.iter().cloned());
        inner
    }
}

struct Walk<'w> {
    registry: &'w Handlebars<'w>,
    file: &'w str,
    root: &'w Value,
    at: (Option<usize>, Option<usize>),
    problems: &'w mut Vec<TemplateProblem>,
}

impl<'w> Walk<'w> {
    fn template(&mut self, template: &Template, scope: &Scope<'w>) {
        for (i, element) in template.elements.iter().enumerate() {
            if let Some(place) = template.mapping.get(i) {
                self.at = (Some(place.0), Some(place.1));
            }
            self.element(element, scope);
        }
    }

    fn element(&mut self, element: &TemplateElement, scope: &Scope<'w>) {
        match element {
            TemplateElement::Expression(h) | TemplateElement::HtmlExpression(h) => self.expression(h, scope),
            TemplateElement::HelperBlock(h) => self.block(h, scope),
            TemplateElement::PartialExpression(d)
            | TemplateElement::PartialBlock(d)
            | TemplateElement::DecoratorExpression(d)
            | TemplateElement::DecoratorBlock(d) => self.decorator(d, scope),
            // Text and comments name nothing.
            TemplateElement::RawString(_) | TemplateElement::Comment(_) | _ => {}
        }
    }

    /// Follows a partial into its own text, with what it is handed; then the block that it wraps.
    fn decorator(&mut self, d: &DecoratorTemplate, scope: &Scope<'w>) {
        let mut given: Vec<_> = d.hash.iter().map(|(k, v)| (k.clone(), self.parameter(v, scope))).collect();
        given.sort_by(|a, b| a.0.cmp(&b.0));
        let context = d.params.first().map(|p| self.parameter(p, scope));
        if let Some(inner) = &d.template {
            self.template(inner, scope);
        }
        let name = parameter_name(&d.name);
        let ours = builtin::PARTIALS.iter().find(|(known, _)| *known == name);
        let Some((partial, (name, _))) = self.registry.get_template(&name).zip(ours) else { return };
        let inner = match context {
            Some(value) => scope.inside(value, &given),
            None => scope.with(&given),
        };
        let (file, at) = (self.file, self.at);
        self.file = name;
        self.template(partial, &inner);
        (self.file, self.at) = (file, at);
    }

    fn expression(&mut self, h: &HelperTemplate, scope: &Scope<'w>) {
        if h.params.is_empty() && h.hash.is_empty() {
            self.parameter(&h.name, scope);
            return;
        }
        self.helper_name(h);
        self.parameters(h.params.iter().chain(h.hash.values()), scope);
    }

    fn helper_name(&mut self, h: &HelperTemplate) {
        const HELPERS: [&str; 17] = [
            "if", "unless", "each", "with", "lookup", "raw", "log", "eq", "ne", "gt", "gte", "lt", "lte", "and", "or",
            "not", "len",
        ];
        let name = parameter_name(&h.name);
        if !HELPERS.contains(&name.as_str()) {
            let near = did_you_mean(&name, HELPERS.into_iter());
            self.report(format!("no helper is called `{name}`{near}"));
        }
    }

    fn block(&mut self, h: &HelperTemplate, scope: &Scope<'w>) {
        self.helper_name(h);
        let first = h.params.first().and_then(|p| self.parameter(p, scope));
        self.parameters(h.params.iter().skip(1).chain(h.hash.values()), scope);
        let inner = match parameter_name(&h.name).as_str() {
            "each" => scope.inside(element_of(first), &given(h, element_of(first))),
            "with" => scope.inside(first, &given(h, first)),
            _ => scope.clone(),
        };
        if let Some(body) = &h.template {
            self.template(body, &inner);
        }
        if let Some(otherwise) = &h.inverse {
            self.template(otherwise, scope);
        }
    }

    fn parameters<'p>(&mut self, parameters: impl Iterator<Item = &'p Parameter>, scope: &Scope<'w>) {
        for parameter in parameters {
            self.parameter(parameter, scope);
        }
    }

    /// The schema of what a parameter stands for, when it is known.
    fn parameter(&mut self, parameter: &Parameter, scope: &Scope<'w>) -> Option<&'w Value> {
        match parameter {
            Parameter::Name(raw) => self.path(raw, scope),
            Parameter::Path(Path::Relative((_, raw))) => self.path(raw, scope),
            Parameter::Subexpression(sub) => {
                self.element(sub.as_element(), scope);
                None
            }
            // Literals, and `@index` and its like.
            Parameter::Path(_) | Parameter::Literal(_) | _ => None,
        }
    }

    fn path(&mut self, raw: &str, scope: &Scope<'w>) -> Option<&'w Value> {
        let (mut rest, mut depth) = (raw, scope.stack.len());
        while let Some(outer) = rest.strip_prefix("../") {
            (rest, depth) = (outer, depth.saturating_sub(1));
        }
        let mut value = match depth.checked_sub(1) {
            Some(top) => scope.stack[top],
            None => None,
        };
        if let Some(from_root) = rest.strip_prefix("@root") {
            (rest, value) = (from_root, Some(self.root));
        }
        let mut names = rest.split(['.', '/']).map(|s| s.trim_matches(['[', ']'])).filter(|s| !s.is_empty()).peekable();
        if let Some(given) = names.peek().and_then(|first| scope.given.get(*first)) {
            value = *given;
            names.next();
        }
        for name in names.filter(|name| *name != "this") {
            value = self.member(value?, name, raw);
        }
        value
    }

    fn member(&mut self, value: &'w Value, name: &str, raw: &str) -> Option<&'w Value> {
        match value {
            Value::Object(fields) => {
                let found = fields.get(name);
                if found.is_none() {
                    let near = did_you_mean(name, fields.keys().map(String::as_str));
                    self.report(unknown(name, raw, &near));
                }
                found
            }
            Value::Array(items) if name.parse::<usize>().is_ok() => items.first(),
            Value::Null => None,
            Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.report(unknown(name, raw, ""));
                None
            }
        }
    }

    fn report(&mut self, what: String) {
        let (line, column) = self.at;
        self.problems.push(TemplateProblem { file: self.file.to_owned(), line, column, what });
    }
}

fn unknown(name: &str, raw: &str, near: &str) -> String {
    let place = if name == raw { String::new() } else { format!(" in `{raw}`") };
    format!("unknown name `{name}`{place}{near}")
}

fn element_of(value: Option<&Value>) -> Option<&Value> {
    match value? {
        Value::Array(items) => items.first(),
        Value::Object(fields) => fields.values().next(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn given<'s>(h: &HelperTemplate, value: Option<&'s Value>) -> Vec<(String, Option<&'s Value>)> {
    match &h.block_param {
        Some(BlockParam::Single(name)) => vec![(parameter_name(name), value)],
        Some(BlockParam::Pair((name, index))) => vec![(parameter_name(name), value), (parameter_name(index), None)],
        Some(_) | None => Vec::new(),
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
