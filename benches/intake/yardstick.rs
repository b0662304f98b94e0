//! The reference pipeline, whose source lies beside this repository: copied, built and started. Its figures are taken
//! with the same instrument as ours; what it prints itself only proves that it did the work.

use crate::Options;
use crate::world::{Measured, STREAM, World};
use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Its durable consumer.
pub const DURABLE: &str = "pipe";

/// Builds it, unless its source is absent.
///
/// # Errors
/// When it does not build.
pub async fn build(options: &Options) -> anyhow::Result<Option<PathBuf>> {
    if !options.yardstick.join("Cargo.toml").is_file() {
        println!("no reference pipeline at {}: intake is measured alone", options.yardstick.display());
        return Ok(None);
    }
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target");
    let (source, output) = (target.join("yardstick-src"), target.join("yardstick"));
    copy(&options.yardstick, &source)?;
    println!("building the reference pipeline (some minutes the first time) …");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(source.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&output)
        .status()
        .await
        .context("cargo")?;
    ensure!(status.success(), "the reference pipeline does not build");
    Ok(Some(output.join("release/yardstick")))
}

/// Starts it on the stream: sqlx, two stages, a synced commit a batch, an ack a message.
///
/// # Errors
/// When it can't be started.
pub fn start(world: &World, binary: &Path, name: &str, events: usize) -> anyhow::Result<Measured> {
    let folder = world.folder(name)?;
    let mut command = Command::new(binary);
    command.args(["pipe", "--driver=sqlx", "--multi=100", "--sync=FULL", "--stages=2", "--ack=each"]);
    command.args([format!("--url={}", world.url), format!("--stream={STREAM}"), format!("--n={events}")]);
    command.arg(format!("--db={}", folder.join("pipe.db").display()));
    Measured::start(command, &folder, None)
}

/// Copies what differs, so that an unchanged source is not built again.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let (source, target) = (entry.as_ref().map(fs::DirEntry::path), entry.as_ref().map(|e| to.join(e.file_name())));
        let (Ok(source), Ok(target)) = (source, target) else { continue };
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            let wanted = fs::read(&source)?;
            if fs::read(&target).ok().as_ref() != Some(&wanted) {
                fs::write(&target, wanted)?;
            }
        }
    }
    Ok(())
}
