//! An apt of our own beside the machine's: another Debian suite from the mirror that the machine already uses,
//! with its own lists and cache, checked against the installed Debian keyring. Nothing of it reaches the
//! machine's sources or its installed packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process;

/// The keys that every Debian machine has.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Which of Debian's archives a suite lives in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Archive {
    Main,
    Security,
}

impl Archive {
    /// The archive of a suite, by its name.
    pub fn of_suite(suite: &str) -> Self {
        if suite.ends_with("-security") { Self::Security } else { Self::Main }
    }

    /// The `Label` in the archive's Release files.
    fn label(self) -> &'static str {
        match self {
            Self::Main => "Debian",
            Self::Security => "Debian-Security",
        }
    }
}

/// apt with one suite as its only source.
pub struct PrivateApt {
    dir: PathBuf,
}

impl PrivateApt {
    /// Sets the private state up in `dir` and reads the suite's package list.
    ///
    /// # Errors
    /// When the machine's apt names no mirror of that archive, or the list cannot be read or verified.
    pub fn new(dir: &Path, archive: Archive, suite: &str) -> Result<Self> {
        let base = mirror(archive)?;
        let architecture = process::capture(process::command("dpkg").arg("--print-architecture"))?;
        for part in ["lists/partial", "archives/partial", "parts", "preferences", "debs"] {
            fs::create_dir_all(dir.join(part)).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        let write = |name: &str, text: &str| {
            fs::write(dir.join(name), text).with_context(|| format!("cannot write {}/{name}", dir.display()))
        };
        write("status", "")?;
        write("sources.list", &source_line(architecture.trim(), &base, suite))?;
        write("apt.conf", &configuration(dir))?;
        let apt = Self { dir: dir.to_path_buf() };
        process::capture(apt.command("apt-get").args(["-qq", "update"]))
            .with_context(|| format!("cannot read the package list of Debian's suite {suite}"))?;
        Ok(apt)
    }

    /// The version of `package` that the suite offers.
    ///
    /// # Errors
    /// When apt cannot be asked.
    pub fn version_of(&self, package: &str) -> Result<Option<String>> {
        let policy = process::capture(self.command("apt-cache").args(["policy", package]))?;
        Ok(candidate(&policy))
    }

    /// Downloads `package` and unpacks it; gives the folder that then holds its files.
    ///
    /// # Errors
    /// When the download fails or does not verify.
    pub fn download_and_unpack(&self, package: &str) -> Result<PathBuf> {
        let debs = self.dir.join("debs");
        for stale in debs_of(&debs, package)? {
            fs::remove_file(&stale).with_context(|| format!("cannot remove {}", stale.display()))?;
        }
        let mut download = self.command("apt-get");
        download.current_dir(&debs).args(["-q", "download", package]);
        process::run_in_step(&format!("downloading {package}"), "apt-download", download)?;
        let deb = debs_of(&debs, package)?
            .pop()
            .with_context(|| format!("apt-get downloaded no file for {package}"))?;
        let tree = self.dir.join("tree");
        process::capture(process::command("dpkg-deb").arg("-x").arg(&deb).arg(&tree))?;
        Ok(tree)
    }

    /// Removes the private state and everything downloaded.
    ///
    /// # Errors
    /// When the folder cannot be removed.
    pub fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.dir).with_context(|| format!("cannot remove {}", self.dir.display()))
    }

    /// One of apt's commands on the private state.
    pub fn command(&self, program: &str) -> Command {
        let mut command = process::command(program);
        command.env("APT_CONFIG", self.dir.join("apt.conf")).env("LC_ALL", "C");
        command
    }
}

/// The mirror that this machine's own sources use for an archive.
fn mirror(archive: Archive) -> Result<String> {
    let targets = process::capture(process::command("apt-get").env_remove("APT_CONFIG").args([
        "indextargets",
        "--format",
        "$(LABEL)|$(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    let Some(base) = base_of(&targets, archive) else {
        bail!("this machine's apt knows no source labelled {} (run apt-get update once)", archive.label());
    };
    Ok(base)
}

fn base_of(targets: &str, archive: Archive) -> Option<String> {
    targets
        .lines()
        .filter_map(|line| line.split_once('|'))
        .find(|(label, _)| *label == archive.label())
        .map(|(_, base)| base.to_owned())
}

fn source_line(architecture: &str, base: &str, suite: &str) -> String {
    format!("deb [arch={architecture} signed-by={KEYRING}] {base} {suite} main\n")
}

fn configuration(dir: &Path) -> String {
    let at = |name: &str| dir.join(name).display().to_string();
    [
        format!("Dir::State::lists \"{}\";", at("lists")),
        format!("Dir::State::status \"{}\";", at("status")),
        format!("Dir::Cache \"{}\";", dir.display()),
        format!("Dir::Cache::archives \"{}\";", at("archives")),
        format!("Dir::Etc::sourcelist \"{}\";", at("sources.list")),
        format!("Dir::Etc::sourceparts \"{}\";", at("parts")),
        "Dir::Etc::preferences \"/dev/null\";".to_owned(),
        format!("Dir::Etc::preferencesparts \"{}\";", at("preferences")),
        "Acquire::Languages \"none\";".to_owned(),
        // Metadata for software centres, which is larger than the package list itself.
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";".to_owned(),
        // apt's own user may not write below a home folder.
        "APT::Sandbox::User \"root\";".to_owned(),
        String::new(),
    ]
    .join("\n")
}

/// The `Candidate:` of `apt-cache policy`.
fn candidate(policy: &str) -> Option<String> {
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate:"))?.trim();
    (version != "(none)").then(|| version.to_owned())
}

/// The downloaded files of one package.
fn debs_of(debs: &Path, package: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(debs).with_context(|| format!("cannot read {}", debs.display()))?;
    let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let named =
        |path: &PathBuf| path.file_name().is_some_and(|name| is_deb_of(&name.to_string_lossy(), package));
    Ok(files.filter(named).collect())
}

fn is_deb_of(file: &str, package: &str) -> bool {
    file.strip_prefix(package).is_some_and(|rest| rest.starts_with('_') && rest.ends_with(".deb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_with_the_archives_label() {
        let targets =
            "Other|http://other.test\nDebian-Security|http://sec.test\nDebian|http://main.test/d/\n";
        assert_eq!(base_of(targets, Archive::Main).as_deref(), Some("http://main.test/d/"));
        assert_eq!(base_of(targets, Archive::Security).as_deref(), Some("http://sec.test"));
        assert_eq!(base_of("Other|http://other.test\n", Archive::Main), None);
    }

    #[test]
    fn security_suites_live_in_the_security_archive() {
        assert_eq!(Archive::of_suite("bookworm-security"), Archive::Security);
        assert_eq!(Archive::of_suite("bookworm-backports"), Archive::Main);
    }

    #[test]
    fn the_candidate_is_read_and_none_is_none() {
        let policy = "rust-src:\n  Installed: (none)\n  Candidate: 1.97.1+dfsg1-1\n  Version table:\n";
        assert_eq!(candidate(policy).as_deref(), Some("1.97.1+dfsg1-1"));
        assert_eq!(candidate("x:\n  Installed: (none)\n  Candidate: (none)\n"), None);
        assert_eq!(candidate(""), None);
    }

    #[test]
    fn a_download_is_recognised_by_its_whole_package_name() {
        assert!(is_deb_of("rust-src_1.97.1+dfsg1-1_all.deb", "rust-src"));
        assert!(!is_deb_of("rust-src-doc_1_all.deb", "rust-src"));
    }
}
