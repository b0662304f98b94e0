//! Puts what a partial holds in the place where it is named. Handlebars copies the whole view for each partial that it runs, which for a
//! digest takes longer than writing it. Only partials that are named without anything more: with parameters they see another view.

use handlebars::template::TemplateElement;
use handlebars::{Handlebars, Template};

/// Partials within partials are followed so deep; what is deeper stays a name.
const DEPTH_MAX: usize = 4;

/// The same template without the names of plain partials that `registry` has. Faults in them are those of the place that names them.
pub(super) fn splice(template: &Template, registry: &Handlebars<'_>) -> Template {
    splice_to(template, registry, DEPTH_MAX)
}

fn splice_to(template: &Template, registry: &Handlebars<'_>, depth: usize) -> Template {
    let mut whole = Template::new();
    whole.name.clone_from(&template.name);
    let mut places = template.mapping.iter().cloned();
    for element in &template.elements {
        let place = places.next();
        let partial = plain_partial(element).filter(|_| depth > 0).and_then(|name| registry.get_template(name));
        match partial {
            Some(partial) => {
                let elements = splice_to(partial, registry, depth - 1).elements;
                whole.mapping.extend(elements.iter().filter_map(|_| place.clone()));
                whole.elements.extend(elements);
            }
            None => {
                whole.mapping.extend(place);
                whole.elements.push(splice_within(element, registry, depth));
            }
        }
    }
    whole
}

/// The name of a partial without parameters, block or indentation.
fn plain_partial(element: &TemplateElement) -> Option<&str> {
    let TemplateElement::PartialExpression(partial) = element else { return None };
    let is_plain = partial.params.is_empty() && partial.hash.is_empty() && partial.template.is_none();
    partial.name.as_name().filter(|_| is_plain && partial.indent.is_none())
}

fn splice_within(element: &TemplateElement, registry: &Handlebars<'_>, depth: usize) -> TemplateElement {
    let splice_inner = |template: &mut Option<Template>| {
        if let Some(inner) = template {
            *inner = splice_to(inner, registry, depth);
        }
    };
    let mut element = element.clone();
    match &mut element {
        TemplateElement::HelperBlock(block) => {
            splice_inner(&mut block.template);
            splice_inner(&mut block.inverse);
        }
        TemplateElement::PartialBlock(block) => splice_inner(&mut block.template),
        // The library may add elements; those that hold templates of ours are the ones above.
        TemplateElement::RawString(_)
        | TemplateElement::HtmlExpression(_)
        | TemplateElement::Expression(_)
        | TemplateElement::DecoratorExpression(_)
        | TemplateElement::DecoratorBlock(_)
        | TemplateElement::PartialExpression(_)
        | TemplateElement::Comment(_)
        | _ => {}
    }
    element
}
