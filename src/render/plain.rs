//! The message of last resort, made in code when no template can be used: what, which error, whose, where to click.

use super::escape::Flavour;
use serde_json::Value;

/// Short plain text in the form of `flavour`, from whatever a view has that was escaped for it.
pub(super) fn write(safe: &Value, flavour: Flavour) -> String {
    let text = |pointer: &str| match safe.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) | None => None,
    };
    let number = text("/number").map(|n| format!("#{n} ")).unwrap_or_default();
    let title = text("/title").or_else(|| text("/headline/verdict")).or_else(|| text("/headline"));
    let title = title.or_else(|| text("/workflow")).unwrap_or_else(|| "Matins has something to say".to_owned());
    let first = format!("{number}{title}");
    if flavour == Flavour::Subject {
        return first;
    }
    let labelled = [
        ("Workflow", "/workflow"),
        ("Step", "/step"),
        ("Item", "/item"),
        ("Class", "/class"),
        ("Error", "/error/message"),
        ("What", "/what"),
        ("To do", "/action"),
        ("Owner", "/owner"),
        ("Runbook", "/runbook"),
        ("Acknowledge", "/acknowledge_url"),
        ("Incident", "/incident_url"),
    ];
    let lines = labelled.iter().filter_map(|(label, pointer)| text(pointer).map(|value| format!("{label}: {value}")));
    let all: Vec<String> = std::iter::once(first).chain(lines).collect();
    match flavour {
        Flavour::Html => {
            format!("<!DOCTYPE html>\n<html lang=\"en\"><body><p>{}</p></body></html>\n", all.join("<br>\n"))
        }
        Flavour::Slack | Flavour::Text | Flavour::Subject => format!("{}\n", all.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::escape::escape_view;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_without_templates_still_says_the_main_things() {
        let view = json!({"number": 7, "title": "Page: pay, 1 item has failed", "workflow": "pay",
            "error": {"message": "<!here> declined"}, "owner": "Asha", "runbook": "https://r/pay"});
        let text = write(&escape_view(view, Flavour::Slack), Flavour::Slack);
        for part in ["#7 Page: pay", "&lt;!here&gt; declined", "Owner: Asha", "https://r/pay"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn nothing_known_is_still_a_message() {
        assert!(!write(&Value::Null, Flavour::Html).is_empty());
    }
}
