//! From the files of a config to what the service runs on.

use crate::clock;
use crate::config::{self, ConfigError, Loaded};
use crate::live::{Keys, Live};
use crate::render::{Parts, Renderer, TemplateProblem};
use crate::silence::Silence;
use crate::store::StoreError;
use std::path::{Path, PathBuf};
use tracing::warn;

/// Why there is no new version to run on.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The config has problems.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// It would be open to strangers.
    #[error("{0}")]
    Auth(#[from] config::AuthMissing),
    /// The store could not be asked for silences.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Reads and checks the config, with `${NAME}` from the environment.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(path: &Path) -> Result<Loaded, CompileError> {
    let loaded = config::load(path, &config::environment, clock::now())?;
    loaded.config.require_auth()?;
    for warning in &loaded.warnings {
        warn!("{warning}");
    }
    Ok(loaded)
}

/// Compiles a loaded config, to messages of these parts. Templates that can't be used are reported and cost only their look.
pub fn compile(loaded: Loaded, silences: Vec<Silence>, keys: &Keys, parts: Parts) -> (Live, Vec<TemplateProblem>) {
    let folder = loaded.config.templates_dir.clone();
    let overrides = folder.as_deref().map(read_templates).unwrap_or_default();
    let (renderer, problems) = Renderer::new(&overrides);
    for problem in &problems {
        warn!("{problem}; the built-in template is used");
    }
    (Live::new(loaded.config, renderer.with_parts(parts), silences, keys), problems)
}

/// Every `<message>/<part>.hbs` below a folder, by name.
pub fn read_templates(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for message in subfolders(folder) {
        for file in files(&message) {
            let parts = [message.file_name(), file.file_name()];
            let [Some(message_name), Some(part)] = parts.map(|p| p.and_then(|p| p.to_str())) else { continue };
            match std::fs::read_to_string(&file) {
                Ok(text) => found.push((format!("{message_name}/{part}"), text)),
                Err(error) => warn!(%error, "{} can't be read; the built-in template is used", file.display()),
            }
        }
    }
    found.sort();
    found
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            warn!(%error, "templates.dir {} can't be read; the built-in templates are used", folder.display());
            return Vec::new();
        }
    };
    entries.filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir()).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(Result::ok).map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "hbs")).collect()
}
