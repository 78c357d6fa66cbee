//! What can go wrong with the kernel, in words for the person who has to mend it.
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;

/// Lines of the verifier's log that are shown: the refusal is at its end.
const LOG_LINES: usize = 12;

/// A failure on the way to or from the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The kernel has no type information of its own.
    #[error(
        "cannot read the kernel's type information in /sys/kernel/btf/vmlinux ({0}); it needs a kernel built with CONFIG_DEBUG_INFO_BTF"
    )]
    Btf(String),
    /// This process may not load programs.
    #[error("this needs root; missing: {0}")]
    Privileges(String),
    /// The agent was built without a kernel side.
    #[error("this agent was built without its kernel side; build it with `cargo xtask build`")]
    NotBuilt,
    /// The object as a whole was refused.
    #[error("cannot load the kernel side: {}", shorten(&.0.to_string()))]
    Object(#[from] EbpfError),
    /// The object lacks a part: it was not built from this source.
    #[error("the kernel object has no {0}; build it with `cargo xtask build`")]
    Missing(&'static str),
    /// A program was refused.
    #[error("the kernel refused the program {name}: {}", explain(source))]
    Program {
        /// Its name.
        name: &'static str,
        /// The refusal.
        source: Box<ProgramError>,
    },
    /// A program could not be attached.
    #[error("cannot attach {name} to {}: {}", to.display(), explain(source))]
    Attach {
        /// The program.
        name: &'static str,
        /// The cgroup or device.
        to: PathBuf,
        /// The refusal.
        source: Box<ProgramError>,
    },
    /// A folder is not there or no cgroup.
    #[error("cannot open the cgroup {}: {source}", path.display())]
    Cgroup {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A map could not be read or written.
    #[error("cannot use the map {name}: {source}")]
    Map {
        /// Its name.
        name: &'static str,
        /// The reason.
        source: Box<MapError>,
    },
    /// Network namespaces could not be followed.
    #[error("cannot follow network devices: {0}")]
    Network(#[source] io::Error),
}

impl KernelError {
    pub(super) fn cgroup(path: &Path, source: io::Error) -> Self {
        Self::Cgroup { path: path.to_path_buf(), source }
    }

    pub(super) fn program(name: &'static str, source: ProgramError) -> Self {
        Self::Program { name, source: Box::new(source) }
    }

    pub(super) fn attach(name: &'static str, to: &Path, source: ProgramError) -> Self {
        Self::Attach { name, to: to.to_path_buf(), source: Box::new(source) }
    }

    pub(super) fn map(name: &'static str) -> impl Fn(MapError) -> Self {
        move |source| Self::Map { name, source: Box::new(source) }
    }
}

/// The chain of reasons in one line; of the verifier's log only the end.
fn explain(error: &ProgramError) -> String {
    if let ProgramError::LoadError { io_error, verifier_log } = error {
        return format!("{io_error}\n{}", shorten(&verifier_log.to_string()));
    }
    shorten(&chain(error))
}

/// An error and its reasons in one line, without those that are part of its text already.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        let reason_text = reason.to_string();
        if !text.contains(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        source = reason.source();
    }
    text
}

fn shorten(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_log_only_the_end_is_shown() {
        let log: String = (0..1000).map(|line| format!("{line}: r0 = 0\n")).collect();
        let text = shorten(&log);
        assert_eq!(text.lines().count(), LOG_LINES);
        assert!(text.ends_with("999: r0 = 0"));
        assert_eq!(shorten("short"), "short");
    }

    #[test]
    fn a_reason_is_told_once() {
        let refused = || io::Error::other("refused");
        let error = KernelError::cgroup(Path::new("/a"), refused());
        assert_eq!(chain(&error), "cannot open the cgroup /a: refused");
        assert_eq!(chain(&KernelError::Network(refused())), "cannot follow network devices: refused");
    }
}
