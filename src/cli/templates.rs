//! `matins templates export`: the built-in templates as files, to be changed.

use super::Failure;
use super::args::Templates;
use super::list::say;
use crate::digest::digest_samples;
use crate::render::{builtin_files, field_names, page_samples};
use anyhow::Context as _;
use std::fs;
use std::path::Path;

pub(super) fn run(command: &Templates) -> Result<(), Failure> {
    let Templates::Export { dir, force } = command;
    let changed: Vec<&str> = builtin_files()
        .iter()
        .filter(|(name, text)| fs::read_to_string(dir.join(name)).is_ok_and(|there| there != *text))
        .map(|(name, _)| *name)
        .collect();
    if !changed.is_empty() && !force {
        let named = changed.join(", ");
        return Err(anyhow::anyhow!("{named} in {} would be lost; --force replaces them", dir.display()).into());
    }
    for (name, text) in builtin_files() {
        write(&dir.join(name), text)?;
    }
    write(&dir.join(FIELDS), &fields())?;
    let count = builtin_files().len();
    let place = dir.canonicalize().unwrap_or_else(|_| dir.clone()).display().to_string();
    say(&format!(
        "{count} templates are in {place}, and every field that they can name in {FIELDS}.\n\
         To use them: [templates] dir = {place:?}. Delete those that you leave as they are: later versions may better them.\n"
    ))
}

/// Where the fields are listed, beside the templates.
const FIELDS: &str = "FIELDS.txt";

/// Every name that the templates of a message can use.
fn fields() -> String {
    let samples: Vec<_> = page_samples().into_iter().chain(digest_samples()).collect();
    let mut text = String::new();
    for (message, names) in field_names(&samples) {
        text.push_str(&format!("{message}\n"));
        for name in names {
            text.push_str(&format!("    {name}\n"));
        }
        text.push('\n');
    }
    text
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("{} can't be made", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("{} can't be written", path.display()))
}
