//! Requests per click at each service of the chain, before and after.

use std::fmt::Write as _;

use super::style;
use crate::chain::Chain;
use crate::table::{mean, ratio};

const WIDTH: f64 = 860.0;
/// Where the bars begin, and how long the longest is; beyond it there is room for its figure.
const LEFT: f64 = 90.0;
const LONGEST: f64 = 700.0;
const BAR: f64 = 13.0;
const GROUP: f64 = 42.0;

/// What the colours mean.
pub fn legend() -> String {
    style::legend(&[
        ("retry", "before: nothing capped"),
        ("capped", "after: one layer retries, 10 % at most"),
    ])
}

/// The bars.
pub fn svg(chain: &Chain) -> String {
    let rows: Vec<(&str, f64, f64)> = chain
        .before
        .layers
        .iter()
        .zip(&chain.after.layers)
        .map(|(before, after)| {
            let per_click = |received, clicks| ratio(received, clicks);
            let (clicks_before, clicks_after) = (chain.before.clicks, chain.after.clicks);
            (before.to, per_click(before.received, clicks_before), per_click(after.received, clicks_after))
        })
        .collect();
    let most = rows.iter().map(|(_, before, after)| before.max(*after)).fold(1.0, f64::max);
    let height = GROUP * rows.len() as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Requests per click at each service\">\n"
    );
    for (row, (service, before, after)) in rows.iter().enumerate() {
        let top = row as f64 * GROUP + 6.0;
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "<text class=\"strong\" x=\"0\" y=\"{:.1}\">{service}</text>", top + BAR + 5.0);
        for (class, value, y) in [("retry", before, top), ("capped", after, top + BAR + 2.0)] {
            let width = (LONGEST * value / most).max(1.0);
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>\
                 <text class=\"figure\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT + width + 6.0,
                y + BAR - 2.5,
                mean(*value)
            );
        }
    }
    svg.push_str("</svg>");
    svg
}
