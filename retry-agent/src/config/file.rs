//! The configuration as it is written (docs/configuration.md).
use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use retry_common::abi::Mode;
use retry_common::recogniser::Evidence;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_saphyr::Spanned;

use super::Limits;
use crate::spec::{BudgetSpec, Statuses, delay, duration};

/// The whole file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub cgroup: String,
    #[serde(deserialize_with = "address")]
    pub metrics: SocketAddr,
    #[serde(deserialize_with = "length")]
    pub window: Duration,
    #[serde(deserialize_with = "statuses")]
    pub failure_statuses: Statuses,
    pub limits: Limits,
    pub default: DefaultTreatment,
    pub rules: Vec<Spanned<Rule>>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            cgroup: "/".to_owned(),
            metrics: SocketAddr::from(([127, 0, 0, 1], 9464)),
            window: Duration::from_secs(60),
            failure_statuses: Statuses::default(),
            limits: Limits::default(),
            default: DefaultTreatment::default(),
            rules: Vec::new(),
        }
    }
}

/// `default:`.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DefaultTreatment {
    #[serde(deserialize_with = "mode")]
    pub mode: Option<Mode>,
    #[serde(deserialize_with = "budget")]
    pub budget: Option<BudgetSpec>,
    #[serde(deserialize_with = "evidence")]
    pub act_on: Option<Evidence>,
    #[serde(deserialize_with = "some_delay")]
    pub retry_after: Option<Duration>,
}

/// One of `rules:`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub name: String,
    #[serde(rename = "match")]
    pub matches: Match,
    #[serde(default, deserialize_with = "mode")]
    pub mode: Option<Mode>,
    #[serde(default, deserialize_with = "budget")]
    pub budget: Option<BudgetSpec>,
    #[serde(default, deserialize_with = "evidence")]
    pub act_on: Option<Evidence>,
    #[serde(default, deserialize_with = "some_delay")]
    pub retry_after: Option<Duration>,
}

/// `match:` of a rule.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Match {
    pub workload: Option<String>,
    pub destination: Option<String>,
}

fn read<'de, D: Deserializer<'de>, T>(
    from: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    read(from, |text| {
        parsed(text).map_err(|_| {
            format!("`{text}` is no address; expected one with a port, such as `127.0.0.1:9464`")
        })
    })
}

fn budget<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BudgetSpec>, D::Error> {
    read(from, parsed).map(Some)
}

fn length<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    read(from, |text| duration(text).map_err(|error| error.to_string()))
}

fn some_delay<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    read(from, |text| delay(text).map_err(|error| error.to_string())).map(Some)
}

fn mode<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mode>, D::Error> {
    const ALL: [Mode; 3] = [Mode::Observe, Mode::DryRun, Mode::Enforce];
    read(from, |text| named(text, "mode", &ALL, Mode::label)).map(Some)
}

fn evidence<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Evidence>, D::Error> {
    const ALL: [Evidence; 2] = [Evidence::Repetition, Evidence::Connection];
    read(from, |text| named(text, "evidence", &ALL, Evidence::label)).map(Some)
}

fn named<T: Copy>(text: &str, what: &str, all: &[T], label: fn(T) -> &'static str) -> Result<T, String> {
    let found = all.iter().find(|value| label(**value) == text);
    found.copied().ok_or_else(|| {
        let labels: Vec<String> = all.iter().map(|value| format!("`{}`", label(*value))).collect();
        format!("`{text}` is no {what}; expected {}", labels.join(" or "))
    })
}

fn statuses<'de, D: Deserializer<'de>>(from: D) -> Result<Statuses, D::Error> {
    let list = Vec::<String>::deserialize(from)?;
    parsed(&list.join(",")).map_err(D::Error::custom)
}
