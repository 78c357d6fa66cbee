//! Tables, once for the terminal and once for the page.

/// A table; the first column is text, the others are figures.
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no row.
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// One more row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// For the terminal, each line indented by two.
    pub fn text(&self) -> String {
        let head: Vec<String> = self.head.iter().map(|&cell| cell.to_owned()).collect();
        let all: Vec<&Vec<String>> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| {
            all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            format!("  {}", cells.collect::<Vec<_>>().join("  "))
        };
        let rule =
            format!("  {}", widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>().join("  "));
        let mut lines = vec![line(&head), rule];
        lines.extend(self.rows.iter().map(line));
        lines.join("\n")
    }

    /// For the page.
    pub fn html(&self) -> String {
        let cells = |tag: &str, row: &mut dyn Iterator<Item = &str>| {
            row.map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect::<String>()
        };
        let head = cells("th", &mut self.head.iter().copied());
        let rows: String = self
            .rows
            .iter()
            .map(|row| format!("<tr>{}</tr>\n", cells("td", &mut row.iter().map(String::as_str))))
            .collect();
        format!("<div class=\"wide\"><table>\n<tr>{head}</tr>\n{rows}</table></div>")
    }
}

/// Text for the inside of an element or attribute.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A count with its thousands apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `part` of `whole`; nothing of nothing is 0.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A mean that is whole more often than not.
pub fn mean(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["layer", "calls"]);
        table.row(vec!["gateway".into(), "1".into()]);
        table.row(vec!["a".into(), "1,000,000".into()]);
        let expected =
            "  layer        calls\n  -------  ---------\n  gateway          1\n  a        1,000,000";
        assert_eq!(table.text(), expected);
    }

    #[test]
    fn markup_in_cells_stays_text() {
        let mut table = Table::new(&["a"]);
        table.row(vec!["<b> & \"c\"".into()]);
        assert!(table.html().contains("<td>&lt;b&gt; &amp; &quot;c&quot;</td>"));
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(count(number), text);
        }
    }
}
