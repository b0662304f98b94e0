//! The commands, one file each. Rules live in the rooms that the commands ask.

pub mod check;
pub mod config_schema;
pub mod demo;
