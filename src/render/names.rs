//! Compares the names that templates use with those that views have. Strict mode alone would miss a misspelt name in
//! `{{#if}}` and `{{#each}}`. What is wrong with a file by itself is found in `lint`.

use super::builtin;
use super::lint::{Sample, TemplateProblem, did_you_mean, parameter_name, stand_in};
use handlebars::template::{BlockParam, DecoratorTemplate, HelperTemplate, Parameter, TemplateElement};
use handlebars::{Handlebars, Path, Template};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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
