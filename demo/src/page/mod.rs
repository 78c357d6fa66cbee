//! The page that stays: both stories with their plots and tables, in one file that needs nothing else.

mod bars;
mod seconds;
mod style;

use crate::chain::{self, Chain};
use crate::check::Check;
use crate::storm::{self, Storm};
use crate::table::{Table, escaped, mean};

/// The whole page.
pub fn html(chain: &Chain, storm: &Storm, checks: &[Check], story: &[String]) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>retry-agent: what the demo saw</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n\
         <h1>A retry storm, and the same storm capped</h1>\n{}\n{}\n{}\n{}</main>\n</body>\n</html>\n",
        style::SHEET,
        paragraphs(story),
        chain_section(chain),
        storm_section(storm),
        check_section(checks)
    )
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("<p>{}</p>\n", escaped(text))).collect()
}

fn chain_section(chain: &Chain) -> String {
    format!(
        "<section>\n<h2>1. One click, {before} calls</h2>\n\
         <p>Five services in a row; the HTTP client of each makes up to {attempts} attempts at a call. The store \
         answers 503 to everything. Requests that each service received per click, by its own count:</p>\n\
         {legend}{bars}\n<h3>Before: the agent observes</h3>\n{table_before}\n\
         <h3>After: budget <code>none</code> on the inner layers, <code>share=10%</code> at the {owner}</h3>\n\
         {table_after}\n<p class=\"note\">Calls to denied are the agent's counts, made in the kernel; \
         <em>received</em> is the count of the service that was called. {clicks} clicks, after {warm_up} that \
         succeeded: of those and these the {owner}'s retries may be a tenth. Median time of a failing click: \
         {ms_before:.0} ms before, {ms_after:.0} ms after. Each call of a service carries an \
         <code>x-request-id</code> of its own, the same on all its attempts; without such a header the calls that \
         a service makes for the first and for the second attempt of the one before it look alike on the wire: \
         they count as retries of this layer, and <code>none</code> denies them, so that a retry of the {owner} \
         gets no further than the next service.</p>\n</section>",
        before = mean(chain.before.mean()),
        attempts = chain::ATTEMPTS,
        legend = bars::legend(),
        bars = bars::svg(chain),
        table_before = chain::table(&chain.before).html(),
        owner = chain::OWNER,
        table_after = chain::table(&chain.after).html(),
        clicks = chain.after.clicks,
        warm_up = chain.after.warm_up,
        ms_before = chain.before.made.median_ms,
        ms_after = chain.after.made.median_ms,
    )
}

fn storm_section(storm: &Storm) -> String {
    let plots: String = storm.runs.iter().map(|run| seconds::figure(storm, run)).collect();
    format!(
        "<section>\n<h2>2. A dependency fails for {outage} seconds</h2>\n\
         <p>{rate} calls a second, each for something else, up to {attempts} attempts at each. Requests per second \
         at the dependency, by its own count:</p>\n{legend}{plots}{table}\n\
         <p class=\"note\"><em>Worst minute</em> is the highest ratio of requests received to calls made in any \
         {minute} seconds: the share is a share of the last minute's calls, so what the calls before the outage \
         earned may be spent in its first second, and the outage looked at alone can show a little more. Also on \
         a good day one call in {hiccup} fails once; <em>retried after</em> says how many of those that did so \
         after the recovery were retried.</p>\n</section>",
        outage = storm.plan.outage,
        rate = storm.plan.rate,
        attempts = storm::ATTEMPTS,
        legend = seconds::legend(),
        table = storm::table(storm).html(),
        minute = 60,
        hiccup = storm::HICCUP,
    )
}

fn check_section(checks: &[Check]) -> String {
    let mut table = Table::new(&["what had to hold", "what was seen", ""]);
    for Check { what, seen, held } in checks {
        let verdict = if *held { "holds" } else { "DOES NOT HOLD" };
        table.row(vec![what.clone(), seen.clone(), verdict.to_owned()]);
    }
    format!("<section class=\"checks\">\n<h2>What had to hold</h2>\n{}\n</section>\n", table.html())
}
