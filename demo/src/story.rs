//! What the reader has just seen, in plain words and with the figures that were counted.

use crate::chain::{Chain, OWNER};
use crate::storm::{Run, Storm};
use crate::table::mean;

/// One paragraph per story, and one on what they have in common.
pub fn told(chain: &Chain, storm: &Storm) -> Vec<String> {
    vec![of_chain(chain), of_storm(storm), common()]
}

fn of_chain(chain: &Chain) -> String {
    format!(
        "One click on a chain of five services cost the failing store {} calls, because each of four HTTP clients \
         tries three times what the one behind it has tried three times already. With no retries on the inner \
         layers and a share of 10 % at the {OWNER}, a click cost {} calls at the store, and a failing click took \
         {:.0} ms instead of {:.0} ms (median).",
        mean(chain.before.mean()),
        mean(chain.after.mean()),
        chain.after.made.median_ms,
        chain.before.made.median_ms,
    )
}

fn of_storm(storm: &Storm) -> String {
    let ratio = |name: &str| storm.runs.iter().find(|run| run.name == name).map_or(0.0, Run::worst_minute);
    let outage = |name: &str| {
        storm.runs.iter().find(|run| run.name == name).map_or(0.0, |run| run.ratio_in_outage(storm.plan))
    };
    let missed: u64 = storm.runs.iter().map(Run::originals_denied).sum();
    let originals = match missed {
        0 => "Every call reached the dependency with its first attempt".to_owned(),
        missed => format!("{missed} calls never reached the dependency"),
    };
    let resumed = storm.runs.iter().all(|run| run.resumed(storm.plan).1 > 0);
    let after = if resumed { "retries passed again" } else { "retries did NOT pass again in every run" };
    format!(
        "While a dependency answered 503 to everything for {} s, it was called {:.2} times as often as there were \
         calls to make; with share=10% {:.2} times, and no minute saw more than {:.3} times; with a pool of 25 \
         tokens {:.2} times. {originals}, and once the dependency had recovered, {after}.",
        storm.plan.outage,
        outage("without"),
        outage("share"),
        ratio("share"),
        outage("token_pool"),
    )
}

fn common() -> String {
    "The programs are Python services with requests and urllib3's Retry, unmodified and unaware; no proxy stood \
     between them. The agent recognised their retries on the wire and answered those above the budget in the \
     kernel, with a 503 of which the server saw nothing."
        .to_owned()
}
