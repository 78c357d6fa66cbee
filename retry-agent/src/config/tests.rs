//! Whole files: what they mean, and what is said of their mistakes.
use super::*;

const EXAMPLE: &str = r#"
cgroup: /
metrics: 127.0.0.1:9464
window: 60s
failure_statuses: [429, 500, 502, 503, 504]
limits: { edges: 16384, failures: 65536, series: 10000 }
default: { mode: observe, budget: unlimited }
rules:
  - name: orders-to-pricing
    match: { workload: "shop/orders", destination: "127.0.0.1:9003" }
    mode: enforce
    budget: share=10%,window=60s
    act_on: repetition
    retry_after: 1s
  - name: to-search
    match: { destination: "search.*" }
    budget: token_pool=25
    retry_after: 1500ms
  - name: at-once
    match: { workload: impatient, destination: "10.0.0.1:80" }
    retry_after: 0s
"#;

#[test]
fn a_whole_file_is_read() {
    let settings = Settings::parse(EXAMPLE).unwrap();
    assert_eq!((settings.cgroup.as_str(), settings.limits.series), ("", 10_000));
    let [orders, search, at_once] = settings.rules.as_slice() else { panic!("{settings:?}") };
    assert_eq!(orders.treatment.budget, BudgetSpec(Rules::share(1000, 60_000, 0)));
    assert_eq!((search.treatment.mode, search.treatment.retry_after_s), (Mode::Enforce, 2));
    assert_eq!((at_once.treatment.mode, at_once.treatment.retry_after_s), (Mode::Observe, 0));
    assert!(orders.matches("shop/orders", "127.0.0.1:9003", None));
    assert!(!orders.matches("shop/orders", "127.0.0.1:9004", None));
    assert!(search.matches("any", "10.0.0.1:80", Some("Search.example:80")));
    assert!(!search.matches("any", "10.0.0.1:80", None));
    assert_eq!(settings.treatments().count(), 4);
}

#[test]
fn nothing_means_observe_everything() {
    for text in ["", "\n", "# only a comment\n"] {
        let settings = Settings::parse(text).unwrap();
        assert_eq!((settings.default, settings.rules.len()), (Treatment::default(), 0), "{text:?}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_was_expected() {
    let rule = "rules:\n  - name: a\n    match: { workload: \"a*\" }\n    budget: none\n";
    let rows = [
        ("windwo: 60s\n", Some(1), "unknown field"),
        ("window: 60s\nwindow: 30s\n", Some(2), "duplicate"),
        ("\nwindow: soon\n", Some(2), "expected a number with ms, s, m or h"),
        ("window: 60\n", Some(1), "expected a number with ms, s, m or h"),
        ("metrics: localhost\n", Some(1), "expected one with a port"),
        ("failure_statuses: [429, banana]\n", Some(1), "expected up to 16 statuses"),
        ("default: { mode: enforced }\n", Some(1), "expected `observe` or `dry-run` or `enforce`"),
        ("default: { budget: share=ten }\n", Some(1), "expected a percentage"),
        ("default: { act_on: guess }\n", Some(1), "expected `repetition` or `connection`"),
        ("limits:\n  edges: -1\n", Some(2), ""),
        ("limits:\n  edges: 1\n", None, "expected 16 to 1048576"),
        ("cgroup: ../../etc\n", None, "expected a path below it"),
        ("rules:\n  - name: a\n    match: {}\n", Some(2), "expected a workload or a destination"),
        ("rules:\n  - match: { workload: a }\n", Some(2), "name"),
        (
            "rules:\n  - name: a\n    match: { workload: a }\n    mode: enforce\n",
            Some(2),
            "expected `budget:`",
        ),
        ("rules: 3\n", Some(1), ""),
        ("[", Some(1), ""),
        ("just a text", Some(1), ""),
    ];
    for (text, line, expected) in rows {
        let (found, said) = Settings::parse(text).expect_err(text);
        assert_eq!(found, line, "{text}: {said}");
        assert!(said.contains(expected), "{text}: {said}");
        assert!(!said.contains('\n'), "{text}: {said}");
    }
    let twice = format!("{rule}  - name: b\n    match: {{ workload: \"*b\" }}\n    budget: none\n");
    let (line, said) = Settings::parse(&twice).expect_err("an overlap");
    assert_eq!(line, Some(5));
    assert!(said.contains("`a` (line 2) and `b`"), "{said}");
    let same_name = format!("{rule}  - name: a\n    match: {{ workload: \"b\" }}\n    budget: none\n");
    assert!(Settings::parse(&same_name).expect_err("a name twice").1.contains("expected another name"));
}

#[test]
fn rules_by_address_and_by_name_do_not_overlap() {
    let text = |a: &str, b: &str| {
        format!(
            "rules:\n  - name: a\n    match: {a}\n    budget: none\n  - name: b\n    match: {b}\n    budget: none\n"
        )
    };
    for (a, b, fine) in [
        ("{ destination: \"10.0.0.1:80\" }", "{ destination: search }", true),
        ("{ destination: \"10.0.0.1:80\" }", "{ destination: \"10.*\" }", false),
        ("{ destination: \"10.0.0.1:80\" }", "{ workload: w }", false),
        (
            "{ workload: w, destination: \"10.0.0.1:80\" }",
            "{ workload: w, destination: \"10.0.0.2:80\" }",
            true,
        ),
        ("{ destination: \"[::1]:80\" }", "{ destination: \"[::1]:*\" }", false),
    ] {
        assert_eq!(Settings::parse(&text(a, b)).is_ok(), fine, "{a} {b}");
    }
}

#[test]
fn an_error_reads_as_compilers_write_it() {
    let error = ConfigError { file: "a.yaml".into(), line: Some(3), text: "x; expected y".to_owned() };
    assert_eq!(error.to_string(), "a.yaml:3: x; expected y");
    let error = ConfigError { file: "a.yaml".into(), line: None, text: "no such file".to_owned() };
    assert_eq!(error.to_string(), "a.yaml: no such file");
}

proptest::proptest! {
    #[test]
    fn any_text_is_harmless(text: String) {
        let _ = Settings::parse(&text);
    }
}
