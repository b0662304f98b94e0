//! `matins templates export`: the built-in templates as files, to be changed.

use super::Failure;
use super::args::Templates;
use super::list::say;
use crate::render::builtin_files;
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
    let count = builtin_files().len();
    say(&format!("{count} templates are in {0}. To use them: [templates] dir = {0:?}\n", dir.display().to_string()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("{} can't be made", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("{} can't be written", path.display()))
}
