//! Where the benchmark finds the agent, and where it leaves what it made.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The paths of one benchmark.
pub struct Place {
    /// The agent that is measured.
    pub agent: PathBuf,
    /// The folder for figures, logs and what nginx and wrk read.
    pub output: PathBuf,
}

impl Place {
    /// Finds the agent, when one is needed, and makes the folder for the output.
    ///
    /// # Errors
    /// When the agent is missing; the message says which command builds it.
    pub fn find(needs_agent: bool) -> Result<Self> {
        let target = target();
        let agent = from_env("RETRY_AGENT_BIN").unwrap_or_else(|| target.join("release/retry-agent"));
        if needs_agent && !agent.is_file() {
            bail!("{} is missing; `cargo xtask build` makes it", agent.display());
        }
        let output = target.join("bench");
        fs::create_dir_all(&output).with_context(|| format!("cannot make {}", output.display()))?;
        Ok(Self { agent, output })
    }

    /// A file in the folder for the output.
    pub fn file(&self, name: &str) -> PathBuf {
        self.output.join(name)
    }

    /// The figures for machines.
    pub fn figures(&self) -> PathBuf {
        self.file("bench.json")
    }
}

fn target() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    from_env("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), |dir| workspace.join(dir))
}

fn from_env(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
