//! Tidy: the rules of the project that no compiler checks and a search can: who may use what, which words are
//! not written, how a file looks. The rules are tables in `rules` and `layers`.

mod layers;
mod rules;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use self::rules::Finding;
use self::source::Source;
use crate::paths;

/// Reads every Rust file of the workspace and prints what breaks a rule.
///
/// # Errors
/// When a file cannot be read, or at least one rule is broken.
pub fn run() -> Result<()> {
    let findings = all(&paths::root())?;
    for Finding { path, line, what } in &findings {
        println!("{path}:{line}: {what}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("1 rule is broken"),
        more => bail!("{more} rules are broken"),
    }
}

fn all(root: &Path) -> Result<Vec<Finding>> {
    let mut files = Vec::new();
    for entry in folder(root)? {
        // Packages are the folders with a manifest; this leaves out target and everything hidden.
        if entry.join("Cargo.toml").is_file() {
            rust_files(&entry, &mut files)?;
        }
    }
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        sources.push(Source::new(&path, &text));
    }
    Source::apply_conditions_of_parents(&mut sources);
    let mut findings: Vec<Finding> = sources.iter().flat_map(rules::findings).collect();
    findings.extend(layers::findings(&sources));
    Ok(findings)
}

fn rust_files(within: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in folder(within)? {
        if entry.is_dir() && !entry.ends_with("target") && !entry.ends_with("node_modules") {
            rust_files(&entry, files)?;
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
    Ok(())
}

fn folder(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rust_files_of_packages_are_read() {
        let root = std::env::temp_dir().join(format!("tidy-test-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("good/Cargo.toml", "");
        write("good/src/deep/bad.rs", "//! Why.\n\nstatic mut X: u8 = 0;\n");
        write("good/target/generated.rs", "no first line\n");
        write("no-package/src/bad.rs", "no first line\n");
        write("good/readme.md", "no first line\n");
        let found = all(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let found: Vec<(&str, usize)> =
            found.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        assert_eq!(found, [("good/src/deep/bad.rs", 3)]);
    }
}
