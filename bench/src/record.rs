//! The figures for machines: everything the tables show, and every single run.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::cpus::Cpus;
use crate::rounds::Plan;
use crate::stats::LoadResult;

/// Grows when a reader of the file would have to change.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Record<'a> {
    schema: u32,
    kernel: String,
    cpu_model: String,
    load_cpu: u32,
    agent_cpu: u32,
    rounds: u32,
    seconds: u32,
    loads: &'a [LoadResult],
}

/// Writes the file.
///
/// # Errors
/// When it cannot be written.
pub fn write(file: &Path, plan: &Plan, cpus: &Cpus, results: &[LoadResult]) -> Result<()> {
    let record = Record {
        schema: SCHEMA,
        kernel: first_line("/proc/sys/kernel/osrelease"),
        cpu_model: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        load_cpu: cpus.load,
        agent_cpu: cpus.rest,
        rounds: plan.rounds,
        seconds: plan.seconds,
        loads: results,
    };
    let text = serde_json::to_string_pretty(&record).context("cannot write JSON")?;
    fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}

fn first_line(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_name_is_read_or_unknown() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n"), "A CPU @ 2 GHz");
        assert_eq!(cpu_model("processor\t: 0\n"), "unknown");
    }
}
