//! Where the demo finds what was built and installed, and where it leaves what it made.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The paths of one demo.
pub struct Place {
    /// The agent under demonstration.
    pub agent: PathBuf,
    /// The interpreter of the environment in which requests and urllib3 are installed.
    pub python: PathBuf,
    /// The folder for the page, the figures and the logs.
    pub output: PathBuf,
}

impl Place {
    /// Finds everything and makes the folder for the output.
    ///
    /// # Errors
    /// When the agent or the client library is missing; the message says which command makes it.
    pub fn find() -> Result<Self> {
        let target = target();
        let agent = from_env("RETRY_AGENT_BIN").unwrap_or_else(|| target.join("release/retry-agent"));
        let clients = from_env("RETRY_CLIENTS").unwrap_or_else(|| target.join("clients"));
        let python = clients.join("venv/bin/python");
        for (file, command) in [(&agent, "cargo xtask build"), (&python, "cargo xtask setup")] {
            if !file.is_file() {
                bail!("{} is missing; `{command}` makes it", file.display());
            }
        }
        let output = target.join("demo");
        fs::create_dir_all(output.join("logs"))
            .with_context(|| format!("cannot make {}", output.display()))?;
        Ok(Self { agent, python, output })
    }

    /// A program of `demo/services`.
    pub fn service(&self, script: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("services").join(script)
    }

    /// The page for people.
    pub fn page(&self) -> PathBuf {
        self.output.join("index.html")
    }

    /// The figures for machines.
    pub fn figures(&self) -> PathBuf {
        self.output.join("demo.json")
    }

    /// Where a process's standard error goes.
    pub fn log(&self, name: &str) -> PathBuf {
        self.output.join("logs").join(format!("{name}.log"))
    }
}

fn target() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    from_env("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), |dir| workspace.join(dir))
}

fn from_env(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
