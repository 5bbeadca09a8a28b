//! Figures of several rounds, and the table that they end up in.

use std::fmt;

/// Figures of one measure, one per round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    /// Adds the figure of a round.
    pub(crate) fn add(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// The median.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Round by round, this figure divided by the other.
    pub(crate) fn over(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one / other).collect())
    }

    /// Another figure of each.
    pub(crate) fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().copied().map(change).collect())
    }

    fn range(&self) -> (f64, f64) {
        self.0.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), figure| {
            (low.min(*figure), high.max(*figure))
        })
    }
}

impl fmt::Display for Figures {
    /// The median, with the range where there are several rounds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number(self.median()))?;
        let (low, high) = self.range();
        if self.0.len() > 1 { write!(f, " ({}–{})", number(low), number(high)) } else { Ok(()) }
    }
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Whatever it is.
    None,
}

impl Target {
    fn verdict(self, value: f64) -> String {
        let (text, met) = match self {
            Self::AtLeast(bound) => (format!("≥ {}", number(bound)), value >= bound),
            Self::AtMost(bound) => (format!("≤ {}", number(bound)), value <= bound),
            Self::None => return "–".to_owned(),
        };
        if met { text } else { format!("{text}, **missed**") }
    }
}

/// A table in Markdown.
#[derive(Debug, Default)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with the columns of a comparison.
    pub(crate) fn of_comparisons() -> Self {
        Self { head: vec!["measure", "fake", "real Garage 2.5.0", "ratio", "target"], rows: Vec::new() }
    }

    /// A table with the columns of figures that stand alone.
    pub(crate) fn of_figures() -> Self {
        Self { head: vec!["measure", "figure", "target"], rows: Vec::new() }
    }

    /// Adds figures with a ratio; `unit` stands behind both.
    pub(crate) fn compare(
        &mut self,
        what: &str,
        unit: &str,
        (fake, real): (&Figures, &Figures),
        ratio: &Figures,
        target: Target,
    ) {
        let verdict = target.verdict(ratio.median());
        self.rows.push(vec![
            what.to_owned(),
            format!("{fake} {unit}"),
            format!("{real} {unit}"),
            ratio.to_string(),
            verdict,
        ]);
    }

    /// Adds a figure that stands alone.
    pub(crate) fn figure(&mut self, what: &str, unit: &str, figures: &Figures, target: Target) {
        let verdict = target.verdict(figures.median());
        self.rows.push(vec![what.to_owned(), format!("{figures} {unit}"), verdict]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.head.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        self.rows.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}
