//! Patterns with `*`: what they match, and whether two of them can match the same text.

/// A text in which `*` stands for any characters, none included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<u8>);

impl Pattern {
    /// The pattern as it is written; repeated stars mean the same as one.
    pub fn new(text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.dedup_by(|a, b| *a == b'*' && *b == b'*');
        Self(bytes)
    }

    /// Whether it matches the whole text.
    pub fn matches(&self, text: &str) -> bool {
        let text = text.as_bytes();
        let (mut at, mut part) = (0, 0);
        // Where the last star stands, and up to where it reaches: it grows when what follows does not fit.
        let mut star: Option<(usize, usize)> = None;
        while at < text.len() {
            match (self.0.get(part), star) {
                (Some(b'*'), _) => {
                    star = Some((part, at));
                    part += 1;
                }
                (Some(byte), _) if *byte == text[at] => (at, part) = (at + 1, part + 1),
                (_, Some((place, reach))) => {
                    star = Some((place, reach + 1));
                    (at, part) = (reach + 1, place + 1);
                }
                (_, None) => return false,
            }
        }
        self.0[part..].iter().all(|part| *part == b'*')
    }

    /// The text itself if there is no star in it.
    pub fn literal(&self) -> Option<&str> {
        if self.0.contains(&b'*') { None } else { std::str::from_utf8(&self.0).ok() }
    }

    /// Whether some text is matched by both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (rows, columns) = (self.0.len(), other.0.len());
        // reached[a][b]: the parts before a and before b can have matched the same text.
        let mut reached = vec![vec![false; columns + 1]; rows + 1];
        reached[0][0] = true;
        for a in 0..=rows {
            for b in 0..=columns {
                if !reached[a][b] {
                    continue;
                }
                let (left, right) = (self.0.get(a), other.0.get(b));
                // A star stands for nothing more, or for the other's next part.
                if left == Some(&b'*') {
                    reached[a + 1][b] = true;
                    if right.is_some() {
                        reached[a][b + 1] = true;
                    }
                }
                if right == Some(&b'*') {
                    reached[a][b + 1] = true;
                    if left.is_some() {
                        reached[a + 1][b] = true;
                    }
                }
                if left.is_some() && left == right {
                    reached[a + 1][b + 1] = true;
                }
            }
        }
        reached[rows][columns]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn matching() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "anything/at:all", true),
            ("shop/*", "shop/orders", true),
            ("shop/*", "shop", false),
            ("*:5432", "10.0.0.1:5432", true),
            ("*:5432", "10.0.0.1:54321", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("**", "x", true),
            ("*a", "aa", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn overlapping() {
        for (a, b, expected) in [
            ("a*", "*b", true),
            ("a*", "b*", false),
            ("shop/orders", "shop/*", true),
            ("shop/orders", "shop/pricing", false),
            ("*:80", "*:8080", false),
            ("10.*:80", "*.1:*", true),
            ("", "*", true),
            ("a", "", false),
        ] {
            assert_eq!(Pattern::new(a).overlaps(&Pattern::new(b)), expected, "{a} {b}");
            assert_eq!(Pattern::new(b).overlaps(&Pattern::new(a)), expected, "{b} {a}");
        }
    }

    /// The plain definition, exponential.
    fn matches_plainly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|at| matches_plainly(rest, &text[at..])),
            Some((byte, rest)) => text.first() == Some(byte) && matches_plainly(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_matches_as_defined(pattern in "[ab*]{0,7}", text in "[ab]{0,8}") {
            prop_assert_eq!(Pattern::new(&pattern).matches(&text), matches_plainly(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn what_both_match_is_an_overlap(a in "[ab*]{0,6}", b in "[ab*]{0,6}", text in "[ab]{0,6}") {
            let (a, b) = (Pattern::new(&a), Pattern::new(&b));
            if a.matches(&text) && b.matches(&text) {
                prop_assert!(a.overlaps(&b));
            }
        }

        #[test]
        fn an_overlap_has_a_witness(a in "[ab*]{0,4}", b in "[ab*]{0,4}") {
            // Two patterns of four parts that overlap do so on a text of at most eight characters.
            let (a, b) = (Pattern::new(&a), Pattern::new(&b));
            let texts = (0..=8).flat_map(|length| {
                (0..1_u32 << length).map(move |bits| {
                    (0..length).map(|at| if bits >> at & 1 == 1 { 'b' } else { 'a' }).collect::<String>()
                })
            });
            let mut texts = texts;
            prop_assert_eq!(a.overlaps(&b), texts.any(|text| a.matches(&text) && b.matches(&text)));
        }
    }
}
