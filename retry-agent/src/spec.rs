//! Budgets, durations and statuses as people write them.
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use retry_common::abi::FAILURE_STATUSES;
use retry_common::budget::{Algorithm, Rules};

/// A text that is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what}; expected {expected}")]
pub struct SpecError {
    text: String,
    what: &'static str,
    expected: &'static str,
}

fn wrong(text: &str, what: &'static str, expected: &'static str) -> SpecError {
    SpecError { text: text.to_owned(), what, expected }
}

const BUDGET: &str =
    "`share=10%[,window=60s][,floor=N]`, `token_pool=25[,refill=1/s]`, `none` or `unlimited`";
const DURATION: &str = "a number with ms, s, m or h, such as `60s`";
const MOST_DURATION: Duration = Duration::from_secs(24 * 3600);

/// A budget: [`Rules`] that can be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSpec(pub Rules);

impl FromStr for BudgetSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.split(',').map(str::trim);
        let (name, value) = pair(parts.next().unwrap_or_default());
        let rules = match (name, value) {
            ("none", None) => only(text, parts, Rules::NONE),
            ("unlimited", None) => only(text, parts, Rules::UNLIMITED),
            ("share", Some(share)) => share_rules(text, share, parts),
            ("token_pool", Some(capacity)) => pool_rules(text, capacity, parts),
            _ => Err(wrong(text, "budget", BUDGET)),
        };
        rules.map(Self)
    }
}

fn pair(part: &str) -> (&str, Option<&str>) {
    match part.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (part, None),
    }
}

fn only<'a>(text: &str, mut rest: impl Iterator<Item = &'a str>, rules: Rules) -> Result<Rules, SpecError> {
    if rest.next().is_some() { Err(wrong(text, "budget", "nothing behind its name")) } else { Ok(rules) }
}

fn share_rules<'a>(text: &str, share: &str, rest: impl Iterator<Item = &'a str>) -> Result<Rules, SpecError> {
    let share = percent(share)?;
    let (mut window, mut floor) = (Duration::from_secs(60), 0);
    for part in rest {
        match pair(part) {
            ("window", Some(value)) => window = duration(value)?,
            ("floor", Some(value)) => floor = number(value)?,
            _ => return Err(wrong(text, "budget", BUDGET)),
        }
    }
    Ok(Rules::share(share, millis(window), floor))
}

fn pool_rules<'a>(
    text: &str,
    capacity: &str,
    rest: impl Iterator<Item = &'a str>,
) -> Result<Rules, SpecError> {
    let capacity = number(capacity)?;
    let mut refill = 1000;
    for part in rest {
        match pair(part) {
            ("refill", Some(value)) => refill = rate(value)?,
            _ => return Err(wrong(text, "budget", BUDGET)),
        }
    }
    Ok(Rules::token_pool(capacity, refill))
}

fn number(text: &str) -> Result<u32, SpecError> {
    let number = text.parse::<u32>().ok().filter(|number| *number <= 1_000_000);
    number.ok_or_else(|| wrong(text, "number", "a whole number up to 1000000"))
}

/// Hundredths of a percent.
fn percent(text: &str) -> Result<u32, SpecError> {
    const EXPECTED: &str = "a percentage from 0% to 1000% with at most two decimals, such as `10%`";
    let digits = text.strip_suffix('%').and_then(|digits| fixed(digits, 2)).filter(|share| *share <= 100_000);
    let share = digits.ok_or_else(|| wrong(text, "share", EXPECTED))?;
    Ok(u32::try_from(share).unwrap_or(u32::MAX))
}

/// Thousandths per second.
fn rate(text: &str) -> Result<u64, SpecError> {
    const EXPECTED: &str = "tokens per second with at most three decimals, such as `1/s`";
    let digits = text.strip_suffix("/s").and_then(|digits| fixed(digits, 3));
    digits.filter(|rate| *rate <= 1_000_000_000).ok_or_else(|| wrong(text, "refill", EXPECTED))
}

/// A decimal number in units of 10^-`places`.
fn fixed(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > places || text.ends_with('.') {
        return None;
    }
    format!("{whole}{part:0<places$}").parse().ok()
}

/// A length of time from 1 ms to a day.
///
/// # Errors
/// When the text is anything else.
pub fn duration(text: &str) -> Result<Duration, SpecError> {
    let length = delay(text)?;
    if length.is_zero() {
        Err(wrong(text, "duration", "a length from 1ms to 24h, such as `60s`"))
    } else {
        Ok(length)
    }
}

/// A length of time from nothing to a day.
///
/// # Errors
/// When the text is anything else.
pub fn delay(text: &str) -> Result<Duration, SpecError> {
    let at = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong(text, "duration", DURATION)),
    };
    let millis = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let length = millis.map(Duration::from_millis).filter(|length| *length <= MOST_DURATION);
    length.ok_or_else(|| wrong(text, "duration", "at most 24h"))
}

/// ms in a duration that [`duration`] gave.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Statuses that count as failures: `429,500,503`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(pub Vec<u16>);

impl Default for Statuses {
    fn default() -> Self {
        Self(vec![429, 500, 502, 503, 504])
    }
}

impl FromStr for Statuses {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        const EXPECTED: &str = "up to 16 statuses from 200 to 599, separated by commas";
        let status = |part: &str| part.trim().parse().ok().filter(|status| (200..600).contains(status));
        let statuses: Option<Vec<u16>> = text.split(',').map(status).collect();
        let statuses = statuses.filter(|statuses| statuses.len() <= FAILURE_STATUSES);
        statuses.map(Self).ok_or_else(|| wrong(text, "list of statuses", EXPECTED))
    }
}

impl fmt::Display for BudgetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = &self.0;
        match rules.algorithm() {
            Algorithm::Unlimited | Algorithm::None => f.write_str(rules.algorithm().label()),
            Algorithm::Share => {
                write!(
                    f,
                    "share={}%,window={}",
                    decimal(u64::from(rules.share), 2),
                    length(rules.window_ms)
                )?;
                if rules.floor == 0 { Ok(()) } else { write!(f, ",floor={}", rules.floor) }
            }
            Algorithm::TokenPool => {
                write!(f, "token_pool={},refill={}/s", rules.capacity, decimal(rules.refill, 3))
            }
        }
    }
}

/// A length of time in the largest unit of which it is a whole number.
fn length(millis: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let unit = units.into_iter().find(|(unit, _)| millis != 0 && millis.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "ms"));
    format!("{}{name}", millis / unit)
}

fn decimal(number: u64, places: u32) -> String {
    let unit = 10_u64.pow(places);
    let text = format!("{}.{:0width$}", number / unit, number % unit, width = places as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn budgets_are_read() {
        let rows = [
            ("share=10%", Rules::share(1000, 60_000, 0)),
            ("share=10%,window=60s", Rules::share(1000, 60_000, 0)),
            ("share=0.25%, window=5m, floor=3", Rules::share(25, 300_000, 3)),
            ("token_pool=25", Rules::token_pool(25, 1000)),
            ("token_pool=25,refill=1/s", Rules::token_pool(25, 1000)),
            ("token_pool=0,refill=0.5/s", Rules::token_pool(0, 500)),
            ("none", Rules::NONE),
            ("unlimited", Rules::UNLIMITED),
        ];
        for (text, rules) in rows {
            assert_eq!(text.parse(), Ok(BudgetSpec(rules)), "{text}");
        }
    }

    #[test]
    fn budgets_are_written_as_people_do() {
        for text in ["share=10%,window=1m", "share=0.5%,window=90s,floor=2", "share=1%,window=1500ms", "none"]
        {
            assert_eq!(text.parse::<BudgetSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_budget_is_refused_with_what_was_expected() {
        for text in [
            "",
            "share",
            "share=",
            "share=10",
            "share=-1%",
            "share=1.234%",
            "share=10%,window=0s",
            "share=10%,x=1",
            "share=1001%",
            "token_pool=x",
            "token_pool=1,refill=1",
            "none=1",
            "none,window=1s",
            "half",
            "share=1.%",
            "share=10%,window=25h",
            "token_pool=99999999",
        ] {
            let error = text.parse::<BudgetSpec>().expect_err(text);
            assert!(error.to_string().contains("; expected "), "{text}: {error}");
        }
    }

    #[test]
    fn statuses_are_read() {
        assert_eq!("500, 503".parse(), Ok(Statuses(vec![500, 503])));
        for text in ["", "99", "600", "5xx", "100", "500;503"] {
            assert!(text.parse::<Statuses>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(share in 0_u32..100_000, window in 1_u64..86_400_000, floor in 0_u32..1000,
                                        capacity in 0_u32..1_000_000, refill in 0_u64..1_000_000) {
            for rules in [Rules::share(share, window, floor), Rules::token_pool(capacity, refill)] {
                prop_assert_eq!(BudgetSpec(rules).to_string().parse(), Ok(BudgetSpec(rules)));
            }
        }

        #[test]
        fn any_text_is_harmless(text: String) {
            let _ = text.parse::<BudgetSpec>();
            let _ = text.parse::<Statuses>();
            let _ = duration(&text);
        }
    }
}
