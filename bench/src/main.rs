//! The benchmark: what the agent costs a program that it watches. `cargo xtask bench` builds what it needs and
//! runs it.
//!
//! wrk (the client) and nginx (the origin) share one CPU over loopback, everything else stays on another one.
//! In each round every setup runs once, so that what changes slowly on the machine changes all of them alike;
//! a setup is only ever compared with the bare run of its own round.
//!
//! | module | |
//! |---|---|
//! | `setup` | what is compared, under which load |
//! | `cpus`, `origin`, `wrk`, `agent` | what runs: where, and how it is started, checked and ended |
//! | `clock` | CPU time, from the kernel's books |
//! | `rounds`, `stats` | the runs; medians and spread |
//! | `report`, `record` | what the reader gets: tables, and a file for machines |

mod agent;
mod clock;
mod cpus;
mod origin;
mod place;
mod record;
mod report;
mod rounds;
mod run;
mod setup;
mod stats;
mod wrk;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;

use crate::cpus::Cpus;
use crate::place::Place;
use crate::rounds::Plan;
use crate::setup::Setup;

/// The share of the load's CPU that other programs may take before the reader is warned.
const QUIET_SHARE: f64 = 0.05;

/// What watching and capping costs: requests per second and CPU time per request, next to the same load bare.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Cli {
    /// How often each setup runs under each load.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How long one run takes.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Only these setups; bare always runs, since the others are compared with it.
    #[arg(long = "setup", value_enum, value_delimiter = ',')]
    setups: Vec<Setup>,
    /// Only this many connections.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: Option<u32>,
}

fn main() -> ExitCode {
    match bench(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(cli: &Cli) -> Result<()> {
    let started = Instant::now();
    let plan = Plan {
        rounds: cli.rounds,
        seconds: cli.seconds,
        setups: setup::chosen(&cli.setups),
        loads: setup::loads(cli.connections),
    };
    let place = Place::find(plan.needs_agent())?;
    let cpus = Cpus::allowed()?;
    announce(&plan, &cpus);
    warn_if_busy(&cpus)?;
    let samples = rounds::all(&place, &cpus, &plan)?;
    let results = stats::results(&plan, &samples);
    if results.is_empty() {
        bail!("nothing was measured");
    }
    println!("{}", report::text(&results));
    record::write(&place.figures(), &plan, &cpus, &results)?;
    println!("{} s in all. Figures: {}", started.elapsed().as_secs(), place.figures().display());
    Ok(())
}

fn announce(plan: &Plan, cpus: &Cpus) {
    println!(
        "{} rounds of {} runs, {} s each: about {} min",
        plan.rounds,
        plan.runs_per_round(),
        plan.seconds,
        plan.duration().as_secs().div_ceil(60)
    );
    let note = if cpus.shared() { " (this machine has no other)" } else { "" };
    println!("wrk and nginx on CPU {}, the agent and this program on CPU {}{note}", cpus.load, cpus.rest);
}

/// Other programs on the load's CPU change every figure; the reader should know.
fn warn_if_busy(cpus: &Cpus) -> Result<()> {
    let share = clock::busy_share(cpus.load, Duration::from_secs(1))?;
    if share > QUIET_SHARE {
        println!(
            "WARNING: other programs keep CPU {} {:.0} % busy just now; expect a wide spread",
            cpus.load,
            share * 100.0
        );
    }
    Ok(())
}
