//! `matins config-schema`: the JSON Schema of `matins.toml`, for editors.

use crate::config;
use std::io::Write;
use std::process::ExitCode;

/// Writes the schema to `out`. Exit code 1 when it can't be written.
pub fn run(out: &mut dyn Write) -> ExitCode {
    match writeln!(out, "{:#}", config::json_schema()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
