//! Texts with expressions in braces.

use super::expression::Scope;
use keys::Kind;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text as it is.
    Plain(&'a str),
    /// An expression, without its braces.
    Expression(&'a str),
    /// `{NAME = FROM..TO}`: whole numbers with both bounds.
    Range {
        /// The variable.
        name: &'a str,
        /// Expression of the first number.
        from: &'a str,
        /// Expression of the last number.
        to: &'a str,
    },
}

/// Splits a text at its braces. `{{` is a brace.
///
/// # Errors
/// If a brace is not closed.
pub fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('{') {
        if rest[at + 1..].starts_with('{') {
            pieces.push(Piece::Plain(&rest[..=at]));
            rest = &rest[at + 2..];
            continue;
        }
        if at > 0 {
            pieces.push(Piece::Plain(&rest[..at]));
        }
        let end = rest[at..].find('}').map(|end| at + end);
        let end =
            end.ok_or_else(|| format!("'{text}': a brace is not closed; '{{{{' is a brace"))?;
        pieces.push(braces(&rest[at + 1..end]));
        rest = &rest[end + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Plain(rest));
    }
    Ok(pieces)
}

fn braces(inner: &str) -> Piece<'_> {
    let range = inner.split_once('=').and_then(|(name, bounds)| {
        let (from, to) = bounds.split_once("..")?;
        Some(Piece::Range { name: name.trim(), from, to })
    });
    range.unwrap_or(Piece::Expression(inner))
}

/// Returns the value of a text: of its expression if the text has nothing else.
///
/// # Errors
/// The expression, and what is wrong.
pub fn filled(text: &str, scope: &mut Scope) -> Result<Kind, String> {
    let pieces = pieces(text)?;
    if let [Piece::Expression(expression)] = pieces[..] {
        return value(expression, scope);
    }
    let mut out = String::with_capacity(text.len());
    for piece in pieces {
        match piece {
            Piece::Plain(plain) => out += plain,
            Piece::Expression(expression) => out += &words(value(expression, scope)?),
            Piece::Range { name, .. } => {
                return Err(format!("'{text}': only names of tables have ranges such as {name}"));
            }
        }
    }
    Ok(Kind::Text(out))
}

/// Returns the value of an expression; the error names the expression.
pub fn value(expression: &str, scope: &mut Scope) -> Result<Kind, String> {
    scope.value(expression).map_err(|why| format!("'{{{expression}}}': {why}"))
}

/// Returns a whole number or a text as text.
pub fn words(kind: Kind) -> String {
    match kind {
        Kind::Text(text) => text,
        Kind::Integer(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn doubled_braces_are_braces(text: String) {
            let doubled = text.replace('{', "{{");
            prop_assert_eq!(filled(&doubled, &mut Scope::default()), Ok(Kind::Text(text)));
        }

        #[test]
        fn no_text_panics(text in "[{}i=.1é+]{0,20}") {
            let mut scope = Scope::default();
            scope.push("i", Kind::Integer(3));
            let _ = filled(&text, &mut scope);
        }
    }

    #[test]
    fn texts_are_filled() {
        let mut scope = Scope::default();
        scope.push("i", Kind::Integer(3));
        scope.push("rate", Kind::Text("1G".to_owned()));
        let text = |text: &str| Ok(Kind::Text(text.to_owned()));
        for (before, after) in [
            ("plain } text", text("plain } text")),
            ("{i}us", text("3us")),
            ("b{i % 3 + 1} > b{ i+1 }", text("b1 > b4")),
            ("{i * 2}", Ok(Kind::Integer(6))),
            ("{rate}", text("1G")),
            ("{{i}", text("{i}")),
            ("{{{i}", text("{3")),
            ("x{i", Err("'x{i': a brace is not closed; '{{' is a brace".to_owned())),
            (
                "{j}",
                Err("'{j}': unknown name 'j'; did you mean 'i'? There are: i, rate".to_owned()),
            ),
            ("{}", Err("'{}': expected a whole number or a name, found the end".to_owned())),
            (
                "a{i = 1..3}",
                Err("'a{i = 1..3}': only names of tables have ranges such as i".into()),
            ),
        ] {
            assert_eq!(filled(before, &mut scope), after, "{before}");
        }
    }
}
