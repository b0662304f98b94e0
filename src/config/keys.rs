//! How a section of config is described: its keys, their form, their defaults and what they are for. The same description
//! checks a file and makes the JSON Schema. The descriptions themselves are in `sections`.

/// A table of config.
#[derive(Debug)]
pub(super) struct Section {
    /// As people call it: `[smtp]`, `[[routes]]`.
    pub(super) title: &'static str,
    /// What it is for.
    pub(super) doc: &'static str,
    /// The keys that it takes.
    pub(super) keys: &'static [Key],
    /// Further keys by the value of `kind`; the title of each is that value.
    pub(super) kinds: &'static [Section],
}

impl Section {
    /// A section whose keys are always the same.
    pub(super) const fn new(title: &'static str, doc: &'static str, keys: &'static [Key]) -> Self {
        Self { title, doc, keys, kinds: &[] }
    }

    /// The key of that name.
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.name == name)
    }

    /// The keys that only this value of `kind` takes.
    pub(super) fn kind(&self, word: &str) -> Option<&'static Section> {
        self.kinds.iter().find(|s| s.title == word)
    }
}

/// A key of a section.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) required: bool,
    /// As it would be written.
    pub(super) default: Option<&'static str>,
    pub(super) doc: &'static str,
}

/// A key that may be left out.
pub(super) const fn key(name: &'static str, form: Form, doc: &'static str) -> Key {
    Key { name, form, required: false, default: None, doc }
}

/// A key that must be there.
pub(super) const fn required(name: &'static str, form: Form, doc: &'static str) -> Key {
    Key { name, form, required: true, default: None, doc }
}

/// A key with a default.
pub(super) const fn default(name: &'static str, form: Form, value: &'static str, doc: &'static str) -> Key {
    Key { name, form, required: false, default: Some(value), doc }
}

/// What a value looks like.
#[derive(Debug)]
pub(super) enum Form {
    /// Any text that is not blank.
    Text,
    /// A credential: any text that is not blank, never shown.
    Secret,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `5m`, or `0s`
    Time,
    /// `5m`, longer than nothing.
    Period,
    /// The same, or the word `never`.
    TimeOrNever,
    /// A whole number from … to …
    Count(u64, u64),
    /// A number, kept to the digit; over and under these, exclusive.
    Decimal(f64, f64),
    /// true or false
    Flag,
    /// A local date.
    Day,
    /// An instant with its offset.
    Instant,
    /// An address of one of these schemes.
    Url(&'static [&'static str]),
    /// The same, which may be a credential.
    SecretUrl(&'static [&'static str]),
    /// `Name <a@b>` or `a@b`
    Mailbox,
    /// One mailbox, several, or the word `owner`.
    Recipients,
    /// An IANA time zone.
    Zone,
    /// A POSIX cron line.
    Cron,
    /// A regular expression.
    Regex,
    /// A NATS subject, wildcards allowed or not.
    Subject { wildcards: bool },
    /// A NATS name: of a stream or a consumer.
    NatsName,
    /// An address to listen on.
    Socket,
    /// A path.
    Path,
    /// The name of something defined elsewhere.
    Ref(Defined),
    /// A `group_by` or `equal` key.
    MatchKey { fingerprint: bool },
    /// One, or several in a list.
    OneOrList(&'static Form),
    /// A table.
    Table(&'static Section),
    /// true, false or a table.
    FlagOrTable(&'static Section),
    /// `[[…]]`; names are unique when the section has the key `name`.
    Tables(&'static Section),
    /// `[….<name>]`
    Named(&'static Section),
    /// A table of one's own keys.
    Map(&'static Form),
    /// A table whose keys are names of something defined elsewhere.
    MapOf(Defined, &'static Form),
    /// A `match` table: workflow, domain, class, step, downstream, label.<key>; values are globs.
    Match,
    /// Opening hours by weekday.
    Hours,
}

/// What a name can stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defined {
    Receiver,
    Digest,
    Calendar,
}

impl Defined {
    /// The section whose keys are these names.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Receiver => "receivers",
            Self::Digest => "digests",
            Self::Calendar => "calendars",
        }
    }

    /// What one of them is called.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Digest => "digest",
            Self::Calendar => "calendar",
        }
    }
}
