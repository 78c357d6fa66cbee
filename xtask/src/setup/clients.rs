//! The HTTP clients that tests and demo run unmodified, in pinned versions, below `target/clients`:
//!
//! | from | to |
//! |---|---|
//! | `tests/clients/requirements.txt` | `venv/`, a Python virtual environment |
//! | `tests/clients/node/` (programs, `package.json`, `package-lock.json`) | `node/`, with `node_modules` |
//! | `tests/clients/go/*.go` | `go-retryablehttp`, built against Debian's library sources |
//!
//! The Node programs are copied because Node looks for modules only beside and above the importing file, and
//! `node_modules` has no business in the source tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::present;
use super::stamp::Stamp;
use crate::{paths, process};

/// Debian's Python: the one whose `venv` module the package python3-venv completes.
const DEBIAN_PYTHON: &str = "/usr/bin/python3";

/// Where Debian's Go library packages put their sources.
const DEBIAN_GOPATH: &str = "/usr/share/gocode";

/// Installs those clients whose manifest changed or that are missing.
///
/// # Errors
/// When a package tool fails; the message names it.
pub fn ensure() -> Result<()> {
    fs::create_dir_all(paths::clients()).context("cannot make the folder for test clients")?;
    python(&sources().join("requirements.txt"))?;
    node(&sources().join("node"))?;
    go(&sources().join("go"))
}

fn sources() -> PathBuf {
    paths::root().join("tests/clients")
}

fn python(requirements: &Path) -> Result<()> {
    let venv = paths::clients().join("venv");
    let version = process::capture(process::command(DEBIAN_PYTHON).arg("--version"))?;
    let stamp = Stamp::new(paths::clients().join("venv.stamp"), &[&version, &read(requirements)?]);
    if stamp.is_fresh() && venv.join("bin/python").exists() {
        present("Python clients");
        return Ok(());
    }
    stamp.forget()?;
    let mut make = process::command(DEBIAN_PYTHON);
    make.args(["-m", "venv", "--clear"]).arg(&venv);
    process::run_in_step("making a Python environment", "python-venv", make)?;
    let mut install = process::command(venv.join("bin/python"));
    install.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-deps"]);
    // Without --no-deps pip would choose versions that the manifest does not pin.
    install.arg("--requirement").arg(requirements);
    process::run_in_step("installing Python clients", "python-clients", install)?;
    process::capture(process::command(venv.join("bin/python")).args(["-m", "pip", "check"]))
        .with_context(|| format!("{} leaves out a package that another one needs", requirements.display()))?;
    stamp.write()
}

fn node(source: &Path) -> Result<()> {
    let folder = paths::clients().join("node");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let version = process::capture(process::command("node").arg("--version"))?;
    let lock = read(&source.join("package-lock.json"))?;
    let stamp = Stamp::new(paths::clients().join("node.stamp"), &[&version, &lock]);
    for file in files_in(source)? {
        // A copy costs nothing, and a program may change without its manifest.
        let name = file.file_name().with_context(|| format!("{} has no name", file.display()))?;
        fs::copy(&file, folder.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    if stamp.is_fresh() && folder.join("node_modules").exists() {
        present("Node clients");
        return Ok(());
    }
    stamp.forget()?;
    let mut install = process::command("npm");
    install.current_dir(&folder).args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    process::run_in_step("installing Node clients", "node-clients", install)?;
    stamp.write()
}

fn go(source: &Path) -> Result<()> {
    let program = paths::clients().join("go-retryablehttp");
    let version = process::capture(process::command("go").arg("version"))?;
    let files: Vec<PathBuf> = files_in(source)?
        .into_iter()
        .filter(|file| file.extension().is_some_and(|ext| ext == "go"))
        .collect();
    let texts = files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    let parts: Vec<&str> = [version.as_str()].into_iter().chain(texts.iter().map(String::as_str)).collect();
    let stamp = Stamp::new(paths::clients().join("go.stamp"), &parts);
    if stamp.is_fresh() && program.exists() {
        present("Go client");
        return Ok(());
    }
    stamp.forget()?;
    process::run_in_step("building the Go client", "go-client", go_build(&program, &files))?;
    stamp.write()
}

fn go_build(program: &Path, files: &[PathBuf]) -> Command {
    let mut build = process::command("go");
    build.args(["build", "-o"]).arg(program).args(files);
    build.env("GO111MODULE", "off").env("GOPATH", DEBIAN_GOPATH).env("GOFLAGS", "");
    build.env("CGO_ENABLED", "0").env("GOCACHE", paths::setup().join("go-cache"));
    build
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The plain files of a folder, in the order of their names.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}
