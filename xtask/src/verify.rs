//! Verify: loads every kernel program on the running kernel and holds the verifier's cost of each against its
//! ceiling in `retry-ebpf/verifier.toml`. A program that grows towards the verifier's limit of a million
//! instructions is noticed here, long before it stops loading on an older kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{build, host, paths, process};

/// One program as `retry-agent verify --json` reports it.
#[derive(Debug, Deserialize)]
struct Loaded {
    program: String,
    verified_instructions: u32,
    jited_bytes: u32,
}

/// `verifier.toml`: program name -> ceiling of verified instructions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ceilings {
    programs: BTreeMap<String, u32>,
}

/// Builds the agent, loads its programs and prints the table.
///
/// # Errors
/// When the kernel refuses a program, one is over its ceiling, or table and object name different programs.
pub fn run() -> Result<()> {
    host::allows_kernel_programs()?;
    build::run()?;
    measure(&paths::agent())
}

/// Loads the programs of an agent that is built already and prints the table.
///
/// # Errors
/// As [`run`].
pub fn measure(agent: &Path) -> Result<()> {
    let report = process::capture(process::command(agent).args(["verify", "--json"]))
        .context("the kernel did not take every program")?;
    let loaded = parse(&report)?;
    let file = paths::root().join("retry-ebpf/verifier.toml");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let ceilings: Ceilings =
        toml::from_str(&text).with_context(|| format!("cannot read {}", file.display()))?;
    print!("{}", table(&loaded, &ceilings.programs));
    let problems = problems(&loaded, &ceilings.programs);
    if !problems.is_empty() {
        bail!("retry-ebpf/verifier.toml does not hold: {}", problems.join("; "));
    }
    Ok(())
}

/// One line about a report from another kernel, where costs differ and the ceilings say nothing.
///
/// # Errors
/// When the report cannot be read or names no program.
pub fn summary(report: &str) -> Result<String> {
    let loaded = parse(report)?;
    let dearest = loaded.iter().max_by_key(|row| row.verified_instructions);
    let dearest = dearest.context("the agent loaded no program")?;
    let (name, cost) = (&dearest.program, dearest.verified_instructions);
    Ok(format!("{} programs load, the dearest is {name} with {cost} instructions", loaded.len()))
}

fn parse(report: &str) -> Result<Vec<Loaded>> {
    serde_json::from_str(report).context("cannot read the report of `retry-agent verify --json`")
}

fn table(loaded: &[Loaded], ceilings: &BTreeMap<String, u32>) -> String {
    let width = loaded.iter().map(|row| row.program.len()).max().unwrap_or(0).max("program".len());
    let mut text = format!(
        "{:width$}  {:>21}  {:>7}  {:>4}  {:>12}\n",
        "program", "verified instructions", "ceiling", "used", "native bytes"
    );
    for row in loaded {
        let (ceiling, used) = match ceilings.get(&row.program) {
            Some(ceiling) => (ceiling.to_string(), percent(row.verified_instructions, *ceiling)),
            None => ("none".to_owned(), String::new()),
        };
        text += &format!(
            "{:width$}  {:>21}  {ceiling:>7}  {used:>4}  {:>12}\n",
            row.program, row.verified_instructions, row.jited_bytes
        );
    }
    text
}

fn percent(part: u32, whole: u32) -> String {
    match u64::from(part).saturating_mul(100).checked_div(u64::from(whole)) {
        Some(percent) => format!("{percent}%"),
        None => "over".to_owned(),
    }
}

fn problems(loaded: &[Loaded], ceilings: &BTreeMap<String, u32>) -> Vec<String> {
    let mut problems = Vec::new();
    if loaded.is_empty() {
        problems.push("the agent loaded no program".to_owned());
    }
    for row in loaded {
        let (name, cost) = (&row.program, row.verified_instructions);
        match ceilings.get(name) {
            None => problems.push(format!("{name} has no ceiling (add `{name} = N`, N above {cost})")),
            Some(ceiling) if cost > *ceiling => {
                problems.push(format!("{name} costs {cost} instructions, its ceiling is {ceiling}"));
            }
            Some(_) => {}
        }
    }
    for name in ceilings.keys().filter(|name| loaded.iter().all(|row| row.program != **name)) {
        problems.push(format!("{name} has a ceiling but was not loaded"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(rows: &[(&str, u32)]) -> Vec<Loaded> {
        let row = |(program, cost): &(&str, u32)| Loaded {
            program: (*program).to_owned(),
            verified_instructions: *cost,
            jited_bytes: 8 * cost,
        };
        rows.iter().map(row).collect()
    }

    fn ceilings(text: &str) -> BTreeMap<String, u32> {
        toml::from_str::<Ceilings>(text).unwrap().programs
    }

    #[test]
    fn every_deviation_is_a_problem() {
        let check = |case: &str, rows: &[(&str, u32)], text: &str, expected: &[&str]| {
            assert_eq!(problems(&loaded(rows), &ceilings(text)), expected, "{case}");
        };
        check("at the ceiling", &[("a", 10)], "[programs]\na = 10", &[]);
        check("over it", &[("a", 11)], "[programs]\na = 10", &["a costs 11 instructions, its ceiling is 10"]);
        let missing = "b has no ceiling (add `b = N`, N above 2)";
        check("no ceiling", &[("a", 1), ("b", 2)], "[programs]\na = 9", &[missing]);
        let extra = "b has a ceiling but was not loaded";
        check("a ceiling too many", &[("a", 1)], "[programs]\na = 9\nb = 9", &[extra]);
        check("nothing loaded", &[], "[programs]", &["the agent loaded no program"]);
        check("a ceiling of zero", &[("a", 0)], "[programs]\na = 0", &[]);
    }

    #[test]
    fn the_table_shows_how_much_of_the_ceiling_is_used() {
        let table = table(
            &loaded(&[("judge_request", 4_500), ("new", 7)]),
            &ceilings("[programs]\njudge_request = 9000"),
        );
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(cells(lines[1]), ["judge_request", "4500", "9000", "50%", "36000"]);
        assert_eq!(cells(lines[2]), ["new", "7", "none", "56"]);
    }

    #[test]
    fn the_agents_report_is_read() {
        let report = r#"[{"program":"x","verified_instructions":123,"jited_bytes":456}]"#;
        let loaded = parse(report).unwrap();
        assert_eq!(summary(report).unwrap(), "1 programs load, the dearest is x with 123 instructions");
        assert!(summary("[]").is_err());
        assert_eq!((loaded[0].program.as_str(), loaded[0].verified_instructions), ("x", 123));
    }

    #[test]
    fn an_unknown_table_in_the_ceilings_is_refused() {
        assert!(toml::from_str::<Ceilings>("[programs]\n[program]\na = 1").is_err());
    }
}
