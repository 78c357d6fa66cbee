//! Directions of dependency between the modules of one crate: arrows go one way. A module may use those below
//! it; two that use each other have no below.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::Finding;
use super::source::{Source, is_word};

/// The crates whose top modules form layers, with the pairs (lower, upper) that no arrow may join upwards even
/// without a circle.
const CRATES: &[(&str, &[(&str, &str)])] = &[
    ("retry-common/src/", &[("budget", "judge"), ("recogniser", "judge"), ("abi", "judge")]),
    (
        "retry-ebpf/src/",
        &[("stages", "hooks"), ("maps", "stages"), ("maps", "hooks"), ("ctx", "hooks"), ("fail", "hooks")],
    ),
    (
        "retry-agent/src/",
        &[
            ("kernel", "cmd"),
            ("workload", "cmd"),
            ("policy", "cmd"),
            ("events", "cmd"),
            ("metrics", "cmd"),
            ("config", "cmd"),
            ("config", "kernel"),
            ("config", "metrics"),
        ],
    ),
];

/// Who uses whom between the top modules of a crate, with a place for each arrow.
type Arrows = BTreeMap<(String, String), (String, usize)>;

/// All arrows that point the wrong way.
pub fn findings(sources: &[Source]) -> Vec<Finding> {
    CRATES.iter().flat_map(|(crate_root, order)| of_crate(sources, crate_root, order)).collect()
}

fn of_crate(sources: &[Source], crate_root: &str, order: &[(&str, &str)]) -> Vec<Finding> {
    let arrows = arrows(sources, crate_root);
    let mut findings = Vec::new();
    for ((from, to), (path, line)) in &arrows {
        let what = if order.contains(&(from.as_str(), to.as_str())) {
            format!("`{from}` uses `{to}`, which lies above it")
        } else if from < to && reaches(&arrows, to, from) {
            format!("`{from}` and `{to}` use each other")
        } else {
            continue;
        };
        findings.push(Finding { path: path.clone(), line: *line, what });
    }
    findings
}

fn arrows(sources: &[Source], crate_root: &str) -> Arrows {
    let mut arrows = Arrows::new();
    for source in sources {
        let Some(from) = source.path.strip_prefix(crate_root).map(top_module) else { continue };
        if from == "lib" || from == "main" {
            continue;
        }
        for (to, at) in used_modules(&source.production) {
            if to != from {
                let place = (source.path.clone(), source.line(at));
                arrows.entry((from.to_owned(), to)).or_insert(place);
            }
        }
    }
    arrows
}

/// `protocol` of `protocol/http1/request.rs`, `judge` of `judge.rs`.
fn top_module(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// The modules named after `crate::`, also in a group, with the place of each. Names of types and functions that
/// the crate's root re-exports are no modules; a lower-case name without `::` after it may be either and counts.
fn used_modules(code: &str) -> Vec<(String, usize)> {
    let mut used = Vec::new();
    for (at, prefix) in code.match_indices("crate::") {
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => used.extend(group_heads(group).into_iter().map(|name| (name, at))),
            None => used.push((word(rest).to_owned(), at)),
        }
    }
    used.retain(|(name, _)| name.starts_with(|first: char| first.is_ascii_lowercase()));
    used
}

/// The first name of each member of `{a::b, c::{d, e}}`, without the opening brace.
fn group_heads(group: &str) -> Vec<String> {
    let mut heads = vec![word(group.trim_start()).to_owned()];
    let mut depth = 0_usize;
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => break,
            b'}' => depth -= 1,
            b',' if depth == 0 => heads.push(word(group[at + 1..].trim_start()).to_owned()),
            _ => {}
        }
    }
    heads
}

fn word(text: &str) -> &str {
    &text[..text.bytes().take_while(|byte| is_word(*byte)).count()]
}

/// Whether arrows lead from `from` to `to`.
fn reaches(arrows: &Arrows, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(here) = open.pop() {
        if here == to {
            return true;
        }
        for (_, next) in arrows.keys().filter(|(start, _)| start == here) {
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        findings(&sources).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let files = [("retry-common/src/budget/share.rs", "use crate::judge::Verdict;")];
        assert_eq!(messages(&files), ["`budget` uses `judge`, which lies above it"]);
        let files = [("retry-common/src/judge.rs", "use crate::budget::Budget;")];
        assert_eq!(messages(&files), [""; 0]);
    }

    #[test]
    fn a_circle_is_found_over_several_modules() {
        let files = [
            ("retry-agent/src/a.rs", "use crate::b::X;"),
            ("retry-agent/src/b.rs", "use crate::{c::{Y, Z}, d};"),
            ("retry-agent/src/c/mod.rs", "fn f() { crate::a::g() }"),
        ];
        assert_eq!(messages(&files), ["`a` and `b` use each other", "`b` and `c` use each other"]);
    }

    #[test]
    fn tests_comments_and_types_of_the_root_make_no_arrows() {
        let files = [
            ("retry-agent/src/a.rs", "use crate::b::X; use crate::Error;"),
            ("retry-agent/src/b.rs", "// crate::a\n#[cfg(test)] mod tests { use crate::a::Y; }"),
        ];
        assert_eq!(messages(&files), [""; 0]);
    }

    #[test]
    fn groups_are_read_to_their_end() {
        assert_eq!(group_heads("a::b, c::{d, e}, f}; g, h"), ["a", "c", "f"]);
    }
}
