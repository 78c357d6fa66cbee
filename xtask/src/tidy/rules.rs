//! The rules, each a line in a table: a word that may not stand somewhere, and why.

use super::source::{Source, is_word};

/// One thing to mend.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    pub line: usize,
    pub what: String,
}

/// Which part of a file a word is looked for in.
#[derive(Clone, Copy)]
enum Part {
    Code,
    Production,
    Kernel,
}

/// A word that may not stand in some places.
struct Ban {
    word: &'static str,
    part: Part,
    /// Path beginnings the rule is about; empty for all.
    below: &'static [&'static str],
    /// Path beginnings it leaves out.
    except: &'static [&'static str],
    why: &'static str,
}

/// The packages that may panic on a failed expectation, because that is how a test fails.
const TEST_PACKAGES: &[&str] = &["tests/"];

/// Longest file in lines; past 400 it wants to be split by concept.
const LONGEST_FILE: usize = 500;

/// File names that say nothing about what is in the file.
const EMPTY_NAMES: [&str; 4] = ["utils.rs", "helpers.rs", "common.rs", "misc.rs"];

const BANS: &[Ban] = &[
    Ban {
        word: "aya",
        part: Part::Code,
        below: &["retry-agent/src/", "tests/", "xtask/"],
        except: &["retry-agent/src/kernel/", "retry-agent/src/kernel.rs"],
        why: "only retry-agent/src/kernel uses aya",
    },
    Ban {
        word: "aya",
        part: Part::Kernel,
        below: &["retry-common/"],
        except: &[],
        why: "retry-common knows aya only behind the feature `user`",
    },
    Ban {
        word: "aya_ebpf",
        part: Part::Code,
        below: &[],
        except: &["retry-ebpf/"],
        why: "only retry-ebpf calls the kernel",
    },
    Ban {
        word: "std",
        part: Part::Kernel,
        below: &["retry-common/src/", "retry-ebpf/src/"],
        except: &[],
        why: "what runs in the kernel has no std",
    },
    Ban {
        word: "static mut",
        part: Part::Code,
        below: &[],
        except: &[],
        why: "shared mutable memory has no owner",
    },
    Ban {
        word: "transmute",
        part: Part::Code,
        below: &[],
        except: &[],
        why: "decode bytes by a length check and read_unaligned",
    },
    Ban {
        word: "unreachable_unchecked",
        part: Part::Code,
        below: &[],
        except: &[],
        why: "a mistake would be undefined behaviour",
    },
    Ban {
        word: "unwrap()",
        part: Part::Production,
        below: &[],
        except: TEST_PACKAGES,
        why: "say what was attempted, or why it cannot fail",
    },
    Ban {
        word: "sleep",
        part: Part::Code,
        below: &["tests/tests/"],
        except: &[],
        why: "wait for a condition with a deadline",
    },
    Ban {
        word: "hooks::",
        part: Part::Code,
        below: &["retry-ebpf/src/hooks/", "retry-ebpf/src/stages/"],
        except: &[],
        why: "hooks call stages, never hooks",
    },
];

/// Everything one file alone can break.
pub fn findings(source: &Source) -> Vec<Finding> {
    let mut findings: Vec<Finding> = BANS.iter().flat_map(|ban| banned(ban, source)).collect();
    findings.extend(suppressed_lints(source));
    findings.extend(shape(source).map(|what| Finding { path: source.path.clone(), line: 1, what }));
    findings
}

fn banned(ban: &Ban, source: &Source) -> Vec<Finding> {
    let at_start = |places: &[&str]| places.iter().any(|place| source.path.starts_with(place));
    if !(ban.below.is_empty() || at_start(ban.below)) || at_start(ban.except) {
        return Vec::new();
    }
    let text = match ban.part {
        Part::Code => &source.code,
        Part::Production => &source.production,
        Part::Kernel => &source.kernel,
    };
    let what = format!("`{}`: {}", ban.word, ban.why);
    places_of(text, ban.word)
        .map(|at| Finding { path: source.path.clone(), line: source.line(at), what: what.clone() })
        .collect()
}

/// The places of a word that is not part of a longer one.
fn places_of<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    let ends_in_word = word.bytes().last().is_some_and(is_word);
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let after = bytes.get(at + word.len());
        let goes_on = ends_in_word && after.is_some_and(|byte| is_word(*byte));
        // `'static mut` is a lifetime and no word of ours.
        !goes_on && !before.is_some_and(|byte| is_word(*byte) || *byte == b'\'')
    })
}

/// `#[allow]` stays for ever, `#[expect]` speaks up when it is no longer needed; both want a reason.
fn suppressed_lints(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (word, needs_reason) in [("[allow(", false), ("[expect(", true)] {
        for (at, _) in source.code.match_indices(word) {
            let attribute = source.text[at..].split(")]").next().unwrap_or_default();
            let what = match (needs_reason, attribute.contains("reason")) {
                (false, _) => "`allow`: suppress a lint by #[expect(lint, reason = \"…\")]",
                (true, false) => "`expect` without a reason",
                (true, true) => continue,
            };
            findings.push(Finding {
                path: source.path.clone(),
                line: source.line(at),
                what: what.to_owned(),
            });
        }
    }
    findings
}

fn shape(source: &Source) -> impl Iterator<Item = String> {
    let name = source.path.rsplit('/').next().unwrap_or_default();
    let lines = source.text.lines().count();
    [
        EMPTY_NAMES.contains(&name).then(|| format!("a file called {name} says nothing about what is in it")),
        (lines > LONGEST_FILE)
            .then(|| format!("{lines} lines; split it by concept ({LONGEST_FILE} at most)")),
        (!source.text.starts_with("//!"))
            .then(|| "the first line is no `//!` that says why it exists".to_owned()),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the findings whose message contains `word`.
    fn lines(path: &str, body: &str, word: &str) -> Vec<usize> {
        let source = Source::new(path, &format!("//! Why.\n{body}"));
        findings(&source)
            .into_iter()
            .filter(|found| found.what.contains(word))
            .map(|found| found.line)
            .collect()
    }

    #[test]
    fn words_are_banned_where_the_table_says() {
        let test = "#[cfg(test)]\nmod tests { fn f() { x.unwrap(); } }";
        for (case, path, body, word, expected) in [
            ("aya outside kernel", "retry-agent/src/metrics/mod.rs", "use aya::maps::Map;", "`aya`", vec![2]),
            ("aya in kernel", "retry-agent/src/kernel/load.rs", "use aya::maps::Map;", "`aya`", vec![]),
            ("aya in a comment", "retry-agent/src/cli.rs", "// unlike aya, we", "`aya`", vec![]),
            (
                "aya behind user",
                "retry-common/src/abi/mod.rs",
                "#[cfg(feature = \"user\")]\nuse aya::Pod;",
                "`aya`",
                vec![],
            ),
            ("aya in common", "retry-common/src/abi/mod.rs", "use aya::Pod;", "`aya`", vec![2]),
            ("std in common", "retry-common/src/judge.rs", "\nuse std::fmt;", "`std`", vec![3]),
            ("core in common", "retry-common/src/judge.rs", "use core::fmt;", "`std`", vec![]),
            ("a longer word", "retry-common/src/judge.rs", "use stdx::fmt;", "`std`", vec![]),
            ("unwrap", "xtask/src/main.rs", "fn f() { x.unwrap(); }", "unwrap()", vec![2]),
            ("unwrap_or", "xtask/src/main.rs", "fn f() { x.unwrap_or(1); }", "unwrap()", vec![]),
            ("unwrap in tests", "xtask/src/main.rs", test, "unwrap()", vec![]),
            (
                "unwrap in the tests' package",
                "tests/src/lib.rs",
                "fn f() { x.unwrap(); }",
                "unwrap()",
                vec![],
            ),
            ("static mut", "retry-ebpf/src/maps.rs", "static mut X: u8 = 1;", "static mut", vec![2]),
            ("a lifetime", "retry-ebpf/src/maps.rs", "fn f() -> &'static mut X", "static mut", vec![]),
            ("sleep in a kernel test", "tests/tests/deny.rs", "thread::sleep(x)", "`sleep`", vec![2]),
            ("sleep in the waiting itself", "tests/src/wait.rs", "thread::sleep(x)", "`sleep`", vec![]),
            ("a hook that calls one", "retry-ebpf/src/hooks/a.rs", "crate::hooks::b()", "hooks::", vec![2]),
        ] {
            assert_eq!(lines(path, body, word), expected, "{case}");
        }
    }

    #[test]
    fn lints_are_suppressed_with_a_reason() {
        let path = "retry-agent/src/a.rs";
        assert_eq!(lines(path, "#[allow(dead_code)]", "allow"), [2]);
        assert_eq!(lines(path, "#[expect(dead_code)]", "without a reason"), [2]);
        assert_eq!(lines(path, "#[expect(dead_code, reason = \"x\")]", "without a reason"), [0; 0]);
        assert_eq!(lines(path, "// #[allow(dead_code)]", "allow"), [0; 0]);
    }

    #[test]
    fn the_shape_of_a_file_counts() {
        let long = "//! Why.\n".to_owned() + &"\n".repeat(LONGEST_FILE);
        for (path, text, words) in [
            ("a/good.rs", "//! Why.\n", vec![]),
            ("a/utils.rs", "//! Why.\n", vec!["says nothing"]),
            ("a/good.rs", "use x;\n", vec!["no `//!`"]),
            ("a/good.rs", long.as_str(), vec!["501 lines"]),
        ] {
            let found: Vec<String> = shape(&Source::new(path, text)).collect();
            assert_eq!(found.len(), words.len(), "{path}: {found:?}");
            assert!(found.iter().zip(words).all(|(text, word)| text.contains(word)), "{path}: {found:?}");
        }
    }
}
