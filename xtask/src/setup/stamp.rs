//! Stamps: a file in the target folder that holds what a finished step was made from. The step runs again
//! exactly when that differs, or when what it made is gone.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// What a step is made from, and where the last finished run noted it.
pub struct Stamp {
    file: PathBuf,
    made_from: String,
}

impl Stamp {
    /// The stamp in `file` of a step made from `parts` (contents of manifests, versions of tools).
    pub fn new(file: PathBuf, parts: &[&str]) -> Self {
        // The parts' lengths keep ("ab", "c") and ("a", "bc") apart.
        let lengths: Vec<String> = parts.iter().map(|part| part.len().to_string()).collect();
        Self { file, made_from: format!("{}\n{}", lengths.join(" "), parts.concat()) }
    }

    /// Whether the last finished run was made from the same.
    pub fn is_fresh(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|noted| noted == self.made_from)
    }

    /// Forgets the last run: to be called before the step touches what it made.
    ///
    /// # Errors
    /// When the stamp is there and cannot be removed.
    pub fn forget(&self) -> Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.file.display()))
            }
            _ => Ok(()),
        }
    }

    /// Notes that the step is finished.
    ///
    /// # Errors
    /// When the stamp cannot be written.
    pub fn write(&self) -> Result<()> {
        fs::write(&self.file, &self.made_from)
            .with_context(|| format!("cannot write {}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_fresh_only_for_what_it_was_written_for() {
        let file = std::env::temp_dir().join(format!("stamp-test-{}", std::process::id()));
        let stamp = Stamp::new(file.clone(), &["ab", "c"]);
        assert!(!stamp.is_fresh(), "nothing was written yet");
        stamp.write().unwrap();
        assert!(Stamp::new(file.clone(), &["ab", "c"]).is_fresh());
        assert!(!Stamp::new(file.clone(), &["a", "bc"]).is_fresh(), "the same bytes cut elsewhere");
        assert!(!Stamp::new(file.clone(), &["ab", "d"]).is_fresh());
        stamp.forget().unwrap();
        stamp.forget().unwrap();
        assert!(!stamp.is_fresh(), "forgotten");
    }
}
