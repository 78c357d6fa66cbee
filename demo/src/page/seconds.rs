//! Requests per second at a dependency: first attempts, and on top of them retries; the outage is shaded.

use std::fmt::Write as _;

use super::style;
use crate::storm::{CEILING, Plan, Run, Storm};
use crate::table::escaped;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 22.0;

/// What the colours mean.
pub fn legend() -> String {
    let shade = "the dependency answers 503 to everything";
    style::legend(&[("plain", "first attempts"), ("retry", "retries"), ("shade", shade)])
}

/// The plot of one run with its caption. All plots of a story have the same scales.
pub fn figure(storm: &Storm, run: &Run) -> String {
    let most = storm.runs.iter().flat_map(Run::per_second).max().unwrap_or(1).max(1);
    let scale = Scale { plan: storm.plan, most: most as f64 * 1.05 };
    let caption = format!(
        "<figcaption>{} <span>&nbsp;{:.2} × the calls made in the worst minute, {:.2} × in the outage alone</span>\
         </figcaption>",
        escaped(run.title),
        run.worst_minute(),
        run.ratio_in_outage(storm.plan)
    );
    let label = format!("Requests per second at the dependency, {}", escaped(run.title));
    format!(
        "<figure>{caption}\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">\n\
         {}{}{}{}</svg></figure>\n",
        outage(&scale),
        axes(&scale, most),
        columns(&scale, run),
        ceiling(&scale)
    )
}

/// From seconds and requests to places on the paper.
struct Scale {
    plan: Plan,
    most: f64,
}

impl Scale {
    fn x(&self, second: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * second / self.plan.length() as f64
    }

    fn y(&self, requests: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * requests / self.most
    }
}

fn outage(scale: &Scale) -> String {
    let (from, to) = (scale.x(scale.plan.healthy as f64), scale.x(scale.plan.recovery() as f64));
    let height = HEIGHT - BOTTOM - TOP;
    let width = to - from;
    format!(
        "<rect class=\"shade\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height}\"/>\
         <text class=\"strong\" x=\"{from:.1}\" y=\"{:.1}\">503 to everything</text>\n",
        TOP - 5.0
    )
}

fn axes(scale: &Scale, most: u64) -> String {
    let mut svg = String::new();
    for requests in (0..=most).step_by(step(most, 4)) {
        let y = scale.y(requests as f64);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{requests}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
    }
    for second in (0..scale.plan.length()).step_by(step(scale.plan.length(), 8)) {
        let (x, y) = (scale.x(second as f64), HEIGHT - 6.0);
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{second} s</text>");
    }
    svg
}

/// A round distance of marks, of which about `marks` fit.
fn step(most: u64, marks: u64) -> usize {
    let rounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];
    let fits = rounds.iter().find(|&&step| most / step <= marks);
    fits.map_or(10_000, |&step| step as usize)
}

/// One column per second; a browser shows its figures when pointed at it.
fn columns(scale: &Scale, run: &Run) -> String {
    let mut svg = String::new();
    let seconds = run.received.first.iter().zip(&run.received.repeated).enumerate();
    // Answers to the last calls' pauses come after the plan's end, where the paper ends too.
    for (second, (&first, &retries)) in seconds.take(scale.plan.length() as usize) {
        let (left, right) = (scale.x(second as f64), scale.x(second as f64 + 1.0));
        let width = (right - left) * 0.86;
        let (floor, waist, top) = (scale.y(0.0), scale.y(first as f64), scale.y((first + retries) as f64));
        let _ = writeln!(
            svg,
            "<g><rect class=\"plain\" x=\"{left:.1}\" y=\"{waist:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
             <rect class=\"retry\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
             <rect class=\"hit\" x=\"{left:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\">\
             <title>second {second}: {first} first attempts, {retries} retries</title></rect></g>",
            floor - waist,
            waist - top,
            right - left,
            floor - TOP
        );
    }
    svg
}

fn ceiling(scale: &Scale) -> String {
    let y = scale.y(scale.plan.rate as f64 * CEILING);
    let (from, to) = (scale.x(0.0), scale.x(scale.plan.length() as f64));
    format!(
        "<line class=\"ceiling\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
         <text class=\"strong\" x=\"{from:.1}\" dx=\"4\" y=\"{:.1}\">{CEILING:.2} × the calls made</text>\n",
        y - 5.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        for (most, marks, expected) in [(300, 4, 100), (120, 4, 50), (55, 8, 10), (325, 8, 50), (3, 4, 1)] {
            assert_eq!(step(most, marks), expected, "{most}");
        }
    }
}
