//! How the page looks, on light and on dark paper.

/// The style sheet. Colours of data: `--plain` for first attempts, `--retry` for what retries add, `--capped` for
/// what is left of it under a cap.
pub const SHEET: &str = "
:root { color-scheme: light dark; --paper: #fff; --ink: #1b202b; --soft: #596273; --line: #dfe3ea;
  --plain: #8793a6; --retry: #d0432f; --capped: #1f6fd1; --shade: #d0432f1f; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #12151b; --ink: #e7eaf0; --soft: #9ba5b5; --line: #2b313c;
    --plain: #66738a; --retry: #f4735f; --capped: #62a4f5; --shade: #f4735f2b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
p { max-width: 46rem; margin: .5rem 0; }
code { font: .92em ui-monospace, monospace; }
.note { color: var(--soft); font-size: .875rem; }
.wide { overflow-x: auto; margin-top: 1rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 500; line-height: 1.25; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.checks td, .checks th { text-align: left; white-space: normal; vertical-align: top; }
figure { margin: 1rem 0 0; }
figcaption { font-size: .875rem; font-weight: 600; }
figcaption span { color: var(--soft); font-weight: 400; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
svg text.strong { fill: var(--ink); }
svg text.figure { fill: var(--ink); font-weight: 600; }
.plain { fill: var(--plain); } .retry { fill: var(--retry); } .capped { fill: var(--capped); }
.shade { fill: var(--shade); } .grid { stroke: var(--line); } .hit { fill: transparent; }
.ceiling { stroke: var(--ink); stroke-dasharray: 4 4; opacity: .6; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; font-size: .875rem; color: var(--soft);
  margin: .5rem 0; }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .45em; }
";

/// A legend: class of the colour and its meaning.
pub fn legend(entries: &[(&str, &str)]) -> String {
    let entries: String = entries
        .iter()
        .map(|(class, text)| format!("<span><i style=\"background: var(--{class})\"></i>{text}</span>"))
        .collect();
    format!("<div class=\"legend\">{entries}</div>\n")
}
