//! Docs: writes the pages that are generated from lists in the code, or says that they are stale.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::build::SKIP_KERNEL_OBJECT;
use crate::{paths, process};

/// A generated page and the arguments that make the agent print it.
const PAGES: [(&str, &[&str]); 1] = [("docs/metrics.md", &["docs", "metrics"])];

/// Writes every page, or with `check` compares each with what the code says now.
///
/// # Errors
/// When the agent does not build or print, or with `check` when a page differs.
pub fn run(check: bool) -> Result<()> {
    let mut build = process::cargo();
    // The binary of the tests' own build serves here: the pages need no kernel object.
    build.args(["build", "--workspace", "--bin", "retry-agent"]).env(SKIP_KERNEL_OBJECT, "1");
    process::run(&mut build).context("the agent does not build")?;
    let mut stale = Vec::new();
    for (page, args) in PAGES {
        let text = process::capture(process::command(paths::target().join("debug/retry-agent")).args(args))
            .with_context(|| format!("the agent does not print {page}"))?;
        let file = paths::root().join(page);
        if fs::read_to_string(&file).is_ok_and(|current| current == text) {
            continue;
        }
        if check {
            stale.push(page);
        } else {
            fs::write(&file, &text).with_context(|| format!("cannot write {page}"))?;
            println!("wrote {page}");
        }
    }
    if !stale.is_empty() {
        bail!("{} is stale; run `cargo xtask docs`", stale.join(", "));
    }
    Ok(())
}
