//! A Rust file as the rules see it: the text, the code without comments and strings, and the production code
//! without what is compiled for tests only. All have the same length, so a place in one is a place in all.

/// One file below the workspace's root.
pub struct Source {
    /// Path below the root, with `/`.
    pub path: String,
    pub text: String,
    /// `text` with comments, strings and characters blanked.
    pub code: String,
    /// `code` with the items behind `#[cfg(test)]` blanked.
    pub production: String,
    /// `production` with the items behind `feature = "user"` blanked, too: what the kernel compiles.
    pub kernel: String,
}

impl Source {
    /// Takes a file's text apart.
    pub fn new(path: &str, text: &str) -> Self {
        let code = blank_comments_and_strings(text);
        let production = blank_gated(&code, text, |condition| condition.contains("test"));
        let kernel = blank_gated(&production, text, |condition| condition.contains("\"user\""));
        Self { path: path.to_owned(), text: text.to_owned(), code, production, kernel }
    }

    /// Blanks what the files' own text cannot show: modules that another file declares behind a condition.
    pub fn apply_conditions_of_parents(sources: &mut [Self]) {
        let for_tests: Vec<String> =
            sources.iter().flat_map(|source| source.children(&source.production)).collect();
        let for_user: Vec<String> =
            sources.iter().flat_map(|source| source.children(&source.kernel)).collect();
        for source in sources {
            let is_below = |children: &[String]| children.iter().any(|child| belongs_to(&source.path, child));
            if is_below(&for_tests) {
                source.production.clear();
            }
            if is_below(&for_user) {
                source.kernel.clear();
            }
        }
    }

    /// Paths, without `.rs`, of the modules declared in the code but not in `part` of it.
    fn children(&self, part: &str) -> Vec<String> {
        let folder = match self.path.rsplit_once('/') {
            Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder,
            _ => self.path.trim_end_matches(".rs"),
        };
        let kept: Vec<&str> = declared_modules(part).collect();
        let gone = declared_modules(&self.code).filter(|name| !kept.contains(name));
        gone.map(|name| format!("{folder}/{name}")).collect()
    }

    /// The line, counted from 1, of a place in the text.
    pub fn line(&self, at: usize) -> usize {
        self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// Whether the file at `path` is the module `child` or lies in its folder.
fn belongs_to(path: &str, child: &str) -> bool {
    path.strip_prefix(child).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The names in `mod name;`.
fn declared_modules(code: &str) -> impl Iterator<Item = &str> {
    code.split("mod ")
        .skip(1)
        .filter_map(|rest| rest.split_once(';'))
        .map(|(name, _)| name.trim())
        .filter(|name| !name.is_empty() && name.bytes().all(is_word))
}

/// What the scanner is in the middle of.
enum Inside {
    Code,
    LineComment,
    BlockComment(usize),
    String,
    RawString(usize),
}

/// Replaces every byte of comments, strings and character literals by a space; line ends stay.
fn blank_comments_and_strings(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut inside = Inside::Code;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (taken, next) = match inside {
            Inside::Code => {
                let (taken, next) = in_code(rest, bytes[..at].last().copied());
                if matches!(next, Inside::Code) && taken == 1 {
                    out.push(rest[0]);
                    at += 1;
                    continue;
                }
                (taken, next)
            }
            Inside::LineComment if rest[0] == b'\n' => (1, Inside::Code),
            Inside::LineComment => (1, Inside::LineComment),
            Inside::BlockComment(depth) if rest.starts_with(b"*/") => {
                (2, if depth == 1 { Inside::Code } else { Inside::BlockComment(depth - 1) })
            }
            Inside::BlockComment(depth) if rest.starts_with(b"/*") => (2, Inside::BlockComment(depth + 1)),
            Inside::BlockComment(depth) => (1, Inside::BlockComment(depth)),
            Inside::String if rest[0] == b'\\' => (2.min(rest.len()), Inside::String),
            Inside::String if rest[0] == b'"' => (1, Inside::Code),
            Inside::String => (1, Inside::String),
            Inside::RawString(hashes) if closes_raw(rest, hashes) => (1 + hashes, Inside::Code),
            Inside::RawString(hashes) => (1, Inside::RawString(hashes)),
        };
        out.extend(rest[..taken].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
        inside = next;
        at += taken;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What begins at the head of `rest`: how many bytes belong to its opening, and what follows. One byte of code
/// is `(1, Code)`; a whole character literal is longer than that.
fn in_code(rest: &[u8], previous: Option<u8>) -> (usize, Inside) {
    let in_word = previous.is_some_and(is_word);
    match rest {
        [b'/', b'/', ..] => (2, Inside::LineComment),
        [b'/', b'*', ..] => (2, Inside::BlockComment(1)),
        [b'"', ..] => (1, Inside::String),
        [b'r', tail @ ..] if !in_word || previous == Some(b'b') => {
            let hashes = tail.iter().take_while(|byte| **byte == b'#').count();
            if tail.get(hashes) == Some(&b'"') {
                (2 + hashes, Inside::RawString(hashes))
            } else {
                (1, Inside::Code)
            }
        }
        [b'\'', b'\\', tail @ ..] => {
            let end = tail.iter().skip(1).position(|byte| *byte == b'\'').unwrap_or(0);
            (end + 4, Inside::Code)
        }
        [b'\'', tail @ ..] => {
            // A lifetime has no closing quote after one character.
            let width = tail.first().map_or(1, |byte| utf8_width(*byte));
            if tail.get(width) == Some(&b'\'') { (width + 2, Inside::Code) } else { (1, Inside::Code) }
        }
        _ => (1, Inside::Code),
    }
}

fn closes_raw(rest: &[u8], hashes: usize) -> bool {
    rest[0] == b'"' && rest.len() > hashes && rest[1..=hashes].iter().all(|byte| *byte == b'#')
}

fn utf8_width(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

/// Whether a byte can be part of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Blanks each item whose `#[cfg(…)]` condition, negations apart, is one that `gate` names.
fn blank_gated(code: &str, text: &str, gate: impl Fn(&str) -> bool) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(").map(|at| from + at) {
        let attribute_end = matching_end(code, found + 1);
        // `code` has the feature's name blanked; the original has it at the same place.
        let condition = &text[found..attribute_end];
        from = attribute_end;
        if gate(condition) && !condition.contains("not(") {
            let end = item_end(code, attribute_end);
            for byte in &mut out[found..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            from = end;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The place after the bracket that closes the one at `open`.
fn matching_end(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The end of the item that begins at `start`, further attributes included: its `;`, its closing brace, or for a
/// field or variant its comma.
fn item_end(code: &str, start: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = start;
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if !code[at..].starts_with("#[") {
            break;
        }
        at = matching_end(code, at + 1);
    }
    let is_use = code[at..].starts_with("use ") || code[at..].starts_with("pub use ");
    let is_item =
        ["fn ", "mod ", "impl", "struct ", "enum ", "trait ", "const ", "static ", "unsafe ", "macro"];
    let head = code[at..].trim_start_matches("pub").trim_start_matches("(crate)").trim_start();
    let is_item = is_use || is_item.iter().any(|word| head.starts_with(word));
    while let Some(byte) = bytes.get(at) {
        match byte {
            b';' => return at + 1,
            b',' if !is_item => return at + 1,
            b'}' | b')' | b']' => return at,
            b'(' | b'[' => at = matching_end(code, at),
            b'{' if is_use => at = matching_end(code, at),
            b'{' => return matching_end(code, at),
            _ => at += 1,
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let code = Source::new("x.rs", text).code;
        assert_eq!(code.len(), text.len(), "{text}");
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn production(text: &str) -> String {
        Source::new("x.rs", text).production.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        for (text, left) in [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            (r#"f("a \" // b", x)"#, "f( , x)"),
            ("f(r#\"a \" b\"#, x)", "f( , x)"),
            ("f(br\"a\", x)", "f(b , x)"),
            ("let q = '\"'; let r = 'ä'; a", "let q = ; let r = ; a"),
            ("let q = '\\''; a", "let q = ; a"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("for r in ranger { }", "for r in ranger { }"),
        ] {
            assert_eq!(code(text), left, "{text}");
        }
    }

    #[test]
    fn items_for_tests_are_no_production() {
        for (text, left) in [
            ("a(); #[cfg(test)] mod tests { fn b() { c(); } } d();", "a(); d();"),
            ("#[cfg(test)] use x::{y, z}; d();", "d();"),
            ("#[cfg(test)] #[inline] fn f<A, B>(x: [u8; 2]) -> u8 { 1 } d();", "d();"),
            ("struct S { #[cfg(test)] x: u8, y: u8 }", "struct S { y: u8 }"),
            ("#[cfg(all(test, unix))] mod t; d();", "d();"),
            ("#[cfg(not(test))] fn f() {} d();", "#[cfg(not(test))] fn f() {} d();"),
            ("#[cfg(unix)] fn f() {}", "#[cfg(unix)] fn f() {}"),
        ] {
            assert_eq!(production(text), left, "{text}");
        }
    }

    #[test]
    fn items_of_the_feature_user_are_not_the_kernels() {
        let source =
            Source::new("x.rs", "#[cfg(feature = \"user\")]\nunsafe impl aya::Pod for X {}\nfn f() {}");
        assert_eq!(source.kernel.trim(), "fn f() {}");
        assert!(source.production.contains("aya::Pod"));
    }

    #[test]
    fn a_module_that_its_parent_declares_for_tests_or_user_is_that_altogether() {
        let mut sources = [
            Source::new(
                "c/src/lib.rs",
                "mod a; #[cfg(test)] mod laws; #[cfg(feature = \"user\")] mod names;",
            ),
            Source::new("c/src/laws.rs", "law();"),
            Source::new("c/src/names/all.rs", "name();"),
            Source::new("c/src/a.rs", "#[cfg(test)] mod laws; a();"),
            Source::new("c/src/a/laws.rs", "law();"),
            Source::new("c/src/lawsuit.rs", "suit();"),
        ];
        Source::apply_conditions_of_parents(&mut sources);
        let left: Vec<(bool, bool)> =
            sources.iter().map(|source| (!source.production.is_empty(), !source.kernel.is_empty())).collect();
        assert_eq!(
            left,
            [(true, true), (false, false), (true, false), (true, true), (false, false), (true, true)]
        );
    }

    #[test]
    fn lines_are_counted_from_one() {
        let source = Source::new("x.rs", "a\nb\nc");
        assert_eq!((source.line(0), source.line(4)), (1, 3));
    }
}
