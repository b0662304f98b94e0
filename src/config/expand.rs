//! `${NAME}` in string values. Pure: the environment and `NAME_FILE` are asked through a function.

/// Why a string can't be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// Neither `NAME` nor `NAME_FILE` is there.
    #[error("{0} is not set, nor is {0}_FILE")]
    Unset(String),
    /// `NAME_FILE` names a file that can't be read.
    #[error("the file that {0}_FILE names can't be read: {1}")]
    Unreadable(String, String),
    /// `${` without a name and a `}` after it.
    #[error("\"${{\" is not followed by a name and \"}}\"; write \"$${{\" for a literal \"${{\"")]
    Malformed,
}

/// What a name stands for.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Result<String, ExpandError>;

/// Fills in each `${NAME}`, once: what comes from the environment is not looked at again. `$${` is a literal `${`, any
/// other `$` stays.
///
/// # Errors
/// The first name that can't be filled in.
pub fn expand(text: &str, lookup: Lookup<'_>) -> Result<String, ExpandError> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$${") {
            out.push_str("${");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let end = after.find('}').ok_or(ExpandError::Malformed)?;
            let name = &after[..end];
            if !is_name(name) {
                return Err(ExpandError::Malformed);
            }
            out.push_str(&lookup(name)?);
            rest = &after[end + 1..];
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `NAME`, else the file that `NAME_FILE` names, without one newline at its end.
///
/// # Errors
/// When neither is set, or when the file can't be read.
pub(super) fn from_environment(name: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    if let Some(value) = env(name) {
        return Ok(value);
    }
    let file = env(&format!("{name}_FILE")).ok_or_else(|| ExpandError::Unset(name.to_owned()))?;
    let mut text =
        std::fs::read_to_string(file).map_err(|e| ExpandError::Unreadable(name.to_owned(), e.kind().to_string()))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(name: &str) -> Result<String, ExpandError> {
        match name {
            "A" => Ok("alpha".into()),
            "NEST" => Ok("${A} $${A} $".into()),
            _ => Err(ExpandError::Unset(name.into())),
        }
    }

    #[test]
    fn names_are_filled_in_once() {
        for (text, wanted) in [
            ("${A}-${A}", "alpha-alpha"),
            ("${NEST}", "${A} $${A} $"),
            ("$${A}", "${A}"),
            ("uhQ$Q$w4", "uhQ$Q$w4"),
            ("$A $", "$A $"),
            ("$$${A}", "$${A}"),
        ] {
            assert_eq!(expand(text, &look).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_unset_or_malformed_is_an_error() {
        assert_eq!(expand("x ${NO}", &look), Err(ExpandError::Unset("NO".into())));
        for text in ["${", "${}", "${A", "${a-b}", "${1A}"] {
            assert_eq!(expand(text, &look), Err(ExpandError::Malformed), "{text}");
        }
    }

    #[test]
    fn a_file_stands_in_for_a_value_without_its_last_newline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        std::fs::write(&path, "two\nlines\r\n").unwrap();
        let file = path.display().to_string();
        let env = move |name: &str| (name == "S_FILE").then(|| file.clone());
        assert_eq!(from_environment("S", &env).as_deref(), Ok("two\nlines"));
        assert_eq!(from_environment("T", &env), Err(ExpandError::Unset("T".into())));
        let gone = |name: &str| (name == "S_FILE").then(|| "no/such/file".to_owned());
        assert!(matches!(from_environment("S", &gone), Err(ExpandError::Unreadable(..))));
    }

    proptest! {
        #[test]
        fn text_without_a_brace_after_a_dollar_is_untouched(text in "[^{]{0,40}") {
            prop_assert_eq!(expand(&text, &look), Ok(text));
        }

        #[test]
        fn escaping_every_opening_gives_the_text_back(text in "[a-z{} ]{0,10}(\\$\\{[a-z}]{0,4}){0,4}") {
            prop_assert_eq!(expand(&text.replace("${", "$${"), &look), Ok(text));
        }

        #[test]
        fn values_are_never_expanded_again(value in ".{0,20}") {
            let inner = value.clone();
            let lookup = move |_: &str| Ok(inner.clone());
            prop_assert_eq!(expand("<${X}>", &lookup), Ok(format!("<{value}>")));
        }
    }
}
