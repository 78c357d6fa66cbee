//! The demo: the two stories of the field, before and after, with real processes and a real HTTP client library
//! that nobody here wrote. `cargo xtask demo` builds what it needs and runs it.
//!
//! | module | |
//! |---|---|
//! | `chain`, `storm` | the stories: how they are played, what they prove |
//! | `services`, `agent`, `cgroup` | guards of what runs: dropped, it is gone |
//! | `scrape`, `reports` | the agent's figures; the services' own |
//! | `table`, `page`, `record`, `story`, `check` | what the reader gets |

mod agent;
mod cgroup;
mod chain;
mod check;
mod interrupt;
mod page;
mod place;
mod progress;
mod record;
mod reports;
mod scrape;
mod services;
mod storm;
mod story;
mod table;

use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Parser;

use crate::cgroup::Cgroup;
use crate::chain::Chain;
use crate::check::Check;
use crate::interrupt::Interrupted;
use crate::place::Place;
use crate::storm::{Plan, Storm};

/// Exit status after Ctrl-C, as a shell has it: 128 and the number of SIGINT.
const INTERRUPTED_STATUS: u8 = 130;

/// Two retry storms, before and after: real services, real client library, retries capped in the kernel.
#[derive(Parser)]
#[command(name = "cargo xtask demo")]
struct Cli {
    /// An outage of five minutes instead of thirty seconds.
    #[arg(long)]
    full: bool,
    /// Calls per second in each of the three runs of the second story [default: 100; on one CPU 40].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rate: Option<u64>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("interrupted; everything the demo started is gone");
            ExitCode::from(INTERRUPTED_STATUS)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    interrupt::watch()?;
    let started = Instant::now();
    let place = Place::find()?;
    let (chain, storm) = play(&place, Plan::new(cli.full, cli.rate))?;
    let mut checks = chain::checks(&chain);
    checks.extend(storm::checks(&storm));
    let told = story::told(&chain, &storm);
    conclude(&checks, &told);
    write(&place, &chain, &storm, &checks, &told)?;
    println!("\n  {} s in all. Page:    {}", started.elapsed().as_secs(), place.page().display());
    println!("               Figures: {}", place.figures().display());
    let broken: Vec<&str> =
        checks.iter().filter(|check| !check.held).map(|check| check.what.as_str()).collect();
    if !broken.is_empty() {
        bail!("what did not hold: {}", broken.join("; "));
    }
    Ok(())
}

/// Both stories, and their tables as soon as they are there.
fn play(place: &Place, plan: Plan) -> Result<(Chain, Storm)> {
    let top = Cgroup::top()?;
    println!("\nStory 1 of 2: one click, many calls");
    println!("  user → {}; every service tries {} times", chain::SERVICES.join(" → "), chain::ATTEMPTS);
    let chain = chain::run(place, &top)?;
    for (phase, title) in [
        (&chain.before, "Before: the agent only observes.".to_owned()),
        (
            &chain.after,
            format!("After: `none` on the inner layers, `{}` at the {}.", chain::OWNER_BUDGET, chain::OWNER),
        ),
    ] {
        println!("\n  {title} {} clicks while the store answers 503:\n", phase.clicks);
        println!("{}", chain::table(phase).text());
    }
    println!(
        "\n  calls ... denied: the agent's count, in the kernel; received: the called service's own count"
    );
    println!(
        "  Each call carries an x-request-id that its attempts share. Without one, the calls that a service makes"
    );
    println!(
        "  for two attempts of its caller look alike: `none` would deny the second call as a retry of the first."
    );
    println!("\nStory 2 of 2: a dependency that fails for {} s", plan.outage);
    println!(
        "  {} calls/s in each of three runs, up to {} attempts per call; {} s well, {} s 503 to everything, {} s well",
        plan.rate,
        storm::ATTEMPTS,
        plan.healthy,
        plan.outage,
        plan.recovered
    );
    let storm = storm::run(place, &top, plan)?;
    println!("\n{}", storm::table(&storm).text());
    println!("\n  received, retries there, x (times the calls made): the dependency's own count");
    println!(
        "  worst minute: the highest x in any 60 s, which is what a share of the last minute's calls caps;"
    );
    println!("  the outage alone may show more, as the calls just before it have earned retries too");
    Ok((chain, storm))
}

fn conclude(checks: &[Check], told: &[String]) {
    println!("\nWhat had to hold");
    for Check { what, seen, held } in checks {
        println!("  {} {what}: {seen}", if *held { "holds         " } else { "DOES NOT HOLD " });
    }
    println!("\nWhat you have just seen");
    for paragraph in told {
        println!("{}\n", wrapped(paragraph, 100));
    }
}

fn write(place: &Place, chain: &Chain, storm: &Storm, checks: &[Check], told: &[String]) -> Result<()> {
    let page = page::html(chain, storm, checks, told);
    let figures = format!("{}\n", record::json(chain, storm, checks));
    for (file, text) in [(place.page(), page), (place.figures(), figures)] {
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Lines of at most `width`, indented by two.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::from(" ")];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("  {word}")),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 9), "  one two\n  three");
    }
}
