//! The daemon's configuration: read, checked as a whole, with the line of every mistake.

mod file;
mod pattern;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use retry_common::abi::{Config, MAX_POLICIES, Mode, OVERFLOW_POLICY, Policy};
use retry_common::answer;
use retry_common::budget::Rules;
use retry_common::recogniser::Evidence;
use serde_saphyr::{Location, Spanned};

use crate::spec::{BudgetSpec, Statuses, millis};

pub use pattern::Pattern;

/// Most bytes of a configuration file.
const MOST_BYTES: u64 = 1 << 20;
/// Most rules: the default and the overflow edge have policies of their own.
const MOST_RULES: usize = (MAX_POLICIES - 2) as usize;

/// A file that cannot be used. It reads `FILE:LINE: what is wrong; expected …`.
#[derive(Debug, thiserror::Error)]
#[error("{}:{}{text}", file.display(), line.map_or_else(|| " ".to_owned(), |line| format!("{line}: ")))]
pub struct ConfigError {
    file: PathBuf,
    line: Option<u64>,
    text: String,
}

/// Everything that the agent is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The subtree that is watched, below the cgroup2 mount.
    pub cgroup: String,
    /// Where metrics are served.
    pub metrics: SocketAddr,
    /// How long a failure explains a repetition.
    pub window: Duration,
    /// Statuses that are failures.
    pub failure_statuses: Statuses,
    /// Sizes of the tables.
    pub limits: Limits,
    /// What holds where no rule matches.
    pub default: Treatment,
    /// Exceptions; at most one matches an edge.
    pub rules: Vec<Rule>,
}

/// How much memory and how many series may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Most edges (workload → destination). About 1 kB each. Twice as many policies may be assigned, to edges and
    /// to workloads as a whole.
    pub edges: u32,
    /// Most fingerprints with failures; the least recently used go first. About 80 bytes each.
    pub failures: u32,
    /// Most time series with a destination.
    pub series: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { edges: 16_384, failures: 65_536, series: 50_000 }
    }
}

/// How retries are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// What becomes of an excess retry.
    pub mode: Mode,
    /// How many may pass.
    pub budget: BudgetSpec,
    /// Least evidence that is charged.
    pub act_on: Evidence,
    /// Seconds that a denied client is asked to wait.
    pub retry_after_s: u32,
}

impl Default for Treatment {
    fn default() -> Self {
        Self {
            mode: Mode::Observe,
            budget: BudgetSpec(Rules::UNLIMITED),
            act_on: Evidence::Repetition,
            retry_after_s: 1,
        }
    }
}

impl Treatment {
    /// As the kernel reads it.
    pub fn policy(&self) -> Policy {
        Policy { mode: self.mode as u8, act_on: self.act_on as u8, reserved: [0; 6], rules: self.budget.0 }
    }

    /// What a denied client reads.
    pub fn answer(&self) -> retry_common::abi::Answer {
        answer::render(self.budget_name(), self.retry_after_s)
    }

    /// The budget's name, as it stands in labels and in the denial.
    pub fn budget_name(&self) -> &'static str {
        self.budget.0.algorithm().label()
    }
}

/// An exception for some edges.
#[derive(Clone, Debug)]
pub struct Rule {
    /// For people.
    pub name: String,
    /// Names of workloads.
    pub workload: Option<Pattern>,
    /// Addresses or names that are called.
    pub destination: Option<Destination>,
    /// What holds for them.
    pub treatment: Treatment,
}

/// What a rule says of the destination. The address is known when a connection begins, the name when its first
/// request is read; where rules of both kinds match, the one with the address holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// `10.0.0.1:80`, `[::1]:80`, `*:5432`.
    Address(Pattern),
    /// Name in the `Host` header, with or without its port.
    Name(Pattern),
}

impl Destination {
    fn new(text: &str) -> Self {
        let numeric = |byte: u8| byte.is_ascii_digit() || b".:*".contains(&byte);
        if text.starts_with('[') || text.bytes().all(numeric) {
            Self::Address(Pattern::new(text))
        } else {
            Self::Name(Pattern::new(&text.to_ascii_lowercase()))
        }
    }
}

impl Rule {
    /// Whether this rule is about the edge. The name is that of the `Host` header, if one was read.
    pub fn matches(&self, workload: &str, address: &str, host: Option<&str>) -> bool {
        let workload_fits = self.workload.as_ref().is_none_or(|pattern| pattern.matches(workload));
        workload_fits
            && match &self.destination {
                None => true,
                Some(Destination::Address(pattern)) => pattern.matches(address),
                Some(Destination::Name(pattern)) => host.is_some_and(|host| names(pattern, host)),
            }
    }

    /// Whether some edge could be matched by both, with nothing to say which rule holds.
    fn overlaps(&self, other: &Self) -> bool {
        let both = |a: Option<&Pattern>, b: Option<&Pattern>| match (a, b) {
            (Some(a), Some(b)) => a.overlaps(b),
            _ => true,
        };
        both(self.workload.as_ref(), other.workload.as_ref())
            && match (&self.destination, &other.destination) {
                (Some(Destination::Address(a)), Some(Destination::Address(b)))
                | (Some(Destination::Name(a)), Some(Destination::Name(b))) => a.overlaps(b),
                (Some(_), Some(_)) => false,
                _ => true,
            }
    }
}

fn names(pattern: &Pattern, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let without_port = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
    pattern.matches(&host) || pattern.matches(without_port)
}

impl Settings {
    /// The configuration in a file.
    ///
    /// # Errors
    /// When it cannot be read or says something that is not expected.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let error = |text: String| ConfigError { file: path.to_path_buf(), line: None, text };
        let length = fs::metadata(path).map_err(|source| error(source.to_string()))?.len();
        if length > MOST_BYTES {
            return Err(error(format!("the file has {length} bytes; expected at most {MOST_BYTES}")));
        }
        let text = fs::read_to_string(path).map_err(|source| error(source.to_string()))?;
        Self::parse(&text).map_err(|(line, text)| ConfigError { file: path.to_path_buf(), line, text })
    }

    /// The configuration in a text; a mistake has its line, counted from 1.
    fn parse(text: &str) -> Result<Self, (Option<u64>, String)> {
        let empty = text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#'));
        let file: file::File = if empty {
            file::File::default()
        } else {
            serde_saphyr::from_str(text).map_err(|error| located(&error))?
        };
        let default = Treatment::default();
        let default = Treatment {
            mode: file.default.mode.unwrap_or(default.mode),
            budget: file.default.budget.unwrap_or(default.budget),
            act_on: file.default.act_on.unwrap_or(default.act_on),
            retry_after_s: seconds(file.default.retry_after, default.retry_after_s),
        };
        check_limits(&file.limits).map_err(|text| (None, text))?;
        let cgroup = below(&file.cgroup).map_err(|text| (None, text))?;
        Ok(Self {
            cgroup,
            metrics: file.metrics,
            window: file.window,
            failure_statuses: file.failure_statuses,
            limits: file.limits,
            rules: rules(file.rules, &default)?,
            default,
        })
    }

    /// What the kernel is told of the node.
    pub fn config(&self) -> Config {
        Config::new(millis(self.window), &self.failure_statuses.0)
    }

    /// The rules by their policy id.
    pub fn numbered_rules(&self) -> impl Iterator<Item = (u32, &Rule)> {
        // 0 is the default's.
        (1..OVERFLOW_POLICY).zip(&self.rules)
    }

    /// Every treatment by its policy id: the default, then those of the rules.
    pub fn treatments(&self) -> impl Iterator<Item = (u32, &Treatment)> {
        let of_rules = self.numbered_rules().map(|(id, rule)| (id, &rule.treatment));
        std::iter::once((0, &self.default)).chain(of_rules)
    }

    /// The treatment with this policy id.
    pub fn treatment(&self, id: u32) -> Option<&Treatment> {
        self.treatments().nth(id as usize).map(|(_, treatment)| treatment)
    }
}

impl Default for Settings {
    fn default() -> Self {
        let file = file::File::default();
        Self {
            cgroup: String::new(),
            metrics: file.metrics,
            window: file.window,
            failure_statuses: file.failure_statuses,
            limits: file.limits,
            default: Treatment::default(),
            rules: Vec::new(),
        }
    }
}

/// The reader's message without the excerpt of the file that it shows around it.
fn located(error: &serde_saphyr::Error) -> (Option<u64>, String) {
    let line = error.location().as_ref().map(line);
    let text = error.without_snippet().to_string();
    // It says the place itself, behind or before the message.
    let text = text.split(" at line ").next().unwrap_or(&text);
    let text = text
        .split_once(": ")
        .filter(|(place, _)| place.starts_with("error: line "))
        .map_or(text, |(_, rest)| rest);
    (line, text.trim().to_owned())
}

fn line(location: &Location) -> u64 {
    location.line()
}

fn seconds(duration: Option<Duration>, default: u32) -> u32 {
    // Retry-After knows whole seconds only; to ask for less than was meant would be wrong.
    duration.map_or(default, |length| u32::try_from(length.as_millis().div_ceil(1000)).unwrap_or(u32::MAX))
}

fn check_limits(limits: &Limits) -> Result<(), String> {
    for (name, value, least, most) in [
        ("edges", limits.edges, 16, 1 << 20),
        ("failures", limits.failures, 1024, 1 << 22),
        ("series", limits.series, 100, 10_000_000),
    ] {
        if !(least..=most).contains(&value) {
            return Err(format!("limits: {name} is {value}; expected {least} to {most}"));
        }
    }
    Ok(())
}

/// A path that stays below the mount.
fn below(path: &str) -> Result<String, String> {
    let path = path.trim_matches('/');
    if path.split('/').any(|part| part == "..") {
        return Err(format!(
            "cgroup: `{path}` leaves the cgroup2 mount; expected a path below it, such as `/`"
        ));
    }
    Ok(path.to_owned())
}

fn rules(rules: Vec<Spanned<file::Rule>>, default: &Treatment) -> Result<Vec<Rule>, (Option<u64>, String)> {
    if rules.len() > MOST_RULES {
        return Err((None, format!("{} rules; expected at most {MOST_RULES}", rules.len())));
    }
    let mut known: Vec<(u64, Rule)> = Vec::new();
    for spanned in rules {
        let at = line(&spanned.referenced);
        let rule = rule(spanned.value, default).map_err(|text| (Some(at), text))?;
        let twin = known.iter().find(|(_, other)| other.name == rule.name || other.overlaps(&rule));
        if let Some((line, other)) = twin {
            let problem = if other.name == rule.name {
                format!("a second rule `{}`, the first is on line {line}; expected another name", rule.name)
            } else {
                let (name, other) = (&rule.name, &other.name);
                format!(
                    "the rules `{other}` (line {line}) and `{name}` can match the same edge; expected rules of which at most one does"
                )
            };
            return Err((Some(at), problem));
        }
        known.push((at, rule));
    }
    Ok(known.into_iter().map(|(_, rule)| rule).collect())
}

fn rule(file: file::Rule, default: &Treatment) -> Result<Rule, String> {
    let (workload, destination) = (file.matches.workload, file.matches.destination);
    if workload.is_none() && destination.is_none() {
        return Err(format!("rule `{}` matches everything; expected a workload or a destination", file.name));
    }
    if workload.as_deref() == Some("") || destination.as_deref() == Some("") {
        return Err(format!(
            "rule `{}` has an empty pattern; expected a name, with `*` for any part of it",
            file.name
        ));
    }
    // A budget is there to be enforced, unless the rule says otherwise.
    let implied = if file.budget.is_some() { Mode::Enforce } else { default.mode };
    let treatment = Treatment {
        mode: file.mode.unwrap_or(implied),
        budget: file.budget.unwrap_or(default.budget),
        act_on: file.act_on.unwrap_or(default.act_on),
        retry_after_s: seconds(file.retry_after, default.retry_after_s),
    };
    if treatment.mode == Mode::Enforce && treatment.budget.0 == Rules::UNLIMITED {
        return Err(format!("rule `{}` enforces without a budget; expected `budget:` beside it", file.name));
    }
    Ok(Rule {
        workload: workload.as_deref().map(Pattern::new),
        destination: destination.as_deref().map(Destination::new),
        treatment,
        name: file.name,
    })
}

#[cfg(test)]
mod tests;
