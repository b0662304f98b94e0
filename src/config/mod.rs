//! Config: embedded defaults, files, environment; raw to checked, all problems at once.

mod schema;

pub use schema::*;
