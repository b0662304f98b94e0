//! A mailbox as config and people write it: `Asha Rao <asha@example.com>` or `asha@example.com`. Pure.
//! How a mail gets there lives in `deliver`.

use lettre::Address;
use std::fmt;

/// A mailbox, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// The name before the address, without its quotes.
    pub name: Option<String>,
    /// `asha@example.com`, as written.
    pub address: String,
}

impl Mailbox {
    /// Reads `Name <a@b>` or `a@b`; none when it is neither.
    ///
    /// Unlike a full RFC 5322 reader it takes any name, Unicode included, and nothing after the address.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, address) = split(text)?;
        Some(Self { name: name.map(str::to_owned), address: address.to_owned() })
    }

    /// The address in lower case: one mailbox written in two ways is one.
    pub fn key(&self) -> String {
        self.address.to_lowercase()
    }

    /// What comes after the last `@`.
    pub fn host(&self) -> &str {
        self.address.rsplit_once('@').map_or("", |(_, host)| host)
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} <{}>", self.address),
            None => f.write_str(&self.address),
        }
    }
}

/// What a mailbox is called: its name, the address when it has none, the text itself when it is no mailbox.
pub fn label(text: &str) -> &str {
    split(text).map_or(text.trim(), |(name, address)| name.unwrap_or(address))
}

fn split(text: &str) -> Option<(Option<&str>, &str)> {
    let text = text.trim();
    if text.contains(['\r', '\n']) {
        return None;
    }
    let (name, address) = match text.strip_suffix('>') {
        Some(inner) => inner.rsplit_once('<')?,
        None => ("", text),
    };
    let (name, address) = (name.trim().trim_matches('"').trim(), address.trim());
    address.parse::<Address>().ok()?;
    Some(((!name.is_empty()).then_some(name), address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mailbox_may_be_bare_named_or_quoted_and_takes_any_name() {
        for (text, name, address) in [
            ("asha@example.com", None, "asha@example.com"),
            (" <asha@example.com> ", None, "asha@example.com"),
            ("Asha <asha@example.com>", Some("Asha"), "asha@example.com"),
            ("Zoë Ñandú <zoe@example.com>", Some("Zoë Ñandú"), "zoe@example.com"),
            ("\"Last, First\" <a@b.example>", Some("Last, First"), "a@b.example"),
            ("Asha $x ${HOME} ${lit} <asha@example.com>", Some("Asha $x ${HOME} ${lit}"), "asha@example.com"),
        ] {
            let read = Mailbox::parse(text).unwrap();
            assert_eq!((read.name.as_deref(), read.address.as_str()), (name, address), "{text}");
            assert_eq!(label(text), name.unwrap_or(address));
        }
        for text in ["", "Asha", "team <red>", "a@", "a@b, c@d", "x <a@b> y", "a@b\r\nBcc: c@d"] {
            assert_eq!(Mailbox::parse(text), None, "{text}");
            assert_eq!(label(text), text);
        }
    }

    #[test]
    fn one_mailbox_written_in_two_ways_is_one() {
        let key = |text| Mailbox::parse(text).unwrap().key();
        assert_eq!(key("Asha Rao <Asha@Example.com>"), key("asha@example.com"));
        assert_eq!(Mailbox::parse("Matins <matins@example.com>").unwrap().host(), "example.com");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(name in "[^\"\\pC\\s]([^\"\\pC]{0,20}[^\"\\pC\\s])?") {
            let mailbox = Mailbox { name: Some(name), address: "a@b.example".to_owned() };
            prop_assert_eq!(Mailbox::parse(&mailbox.to_string()), Some(mailbox));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (Mailbox::parse(&text), label(&text));
        }
    }
}
