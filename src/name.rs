//! Names that people give in config, each its own type, so that a digest's name can't be taken for a receiver's.
//! What a name refers to lives in the room of that thing, never here. Clones share the text: most of what is kept is kept by name.

use std::sync::Arc;

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Takes the name as written.
            pub fn new(name: impl Into<String>) -> Self {
                Self(Arc::from(name.into()))
            }
            /// The name as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(Self::new)
            }
        }

        impl From<&str> for $type {
            fn from(name: &str) -> Self {
                Self(Arc::from(name))
            }
        }
    };
}

name!(
    /// A workflow: the pipeline that an event speaks of.
    WorkflowName
);
name!(
    /// A `[receivers.<name>]` of config. A receiver `to = "owner"` stands for one address per owner.
    ReceiverName
);
name!(
    /// A `[digests.<name>]` of config: `hourly`, `daily`, `weekly` or a name of one's own.
    DigestName
);
name!(
    /// A `[calendars.<name>]` of config.
    CalendarName
);
name!(
    /// A `[[routes]]` entry of config.
    RouteName
);
