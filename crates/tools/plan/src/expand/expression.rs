//! Expressions in braces: whole numbers, parameters, variables, `+ - * / %` and parentheses.

use keys::{Kind, unknown};

/// Deepest nesting of parentheses and signs.
const DEEPEST: usize = 32;

/// A parameter, a variable of a pattern, or a cell of a row.
struct Variable {
    name: String,
    value: Kind,
    is_used: bool,
}

/// The names that expressions can contain, the innermost last.
#[derive(Default)]
pub struct Scope(Vec<Variable>);

impl Scope {
    /// Adds a name. Hides an outer name.
    pub fn push(&mut self, name: &str, value: Kind) {
        self.0.push(Variable { name: name.to_owned(), value, is_used: false });
    }

    /// Adds a name that must be new.
    ///
    /// # Errors
    /// If the name is not a word, or has a value.
    pub fn define(&mut self, name: &str, value: Kind) -> Result<(), String> {
        if !is_word(name) {
            return Err(format!("invalid name '{name}': expected letters, digits and '_'"));
        }
        if self.0.iter().any(|known| known.name == name) {
            return Err(format!("'{name}' has a value already"));
        }
        self.push(name, value);
        Ok(())
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes all names but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Returns whether an expression has read the name.
    pub fn is_used(&self, name: &str) -> bool {
        self.0.iter().rev().find(|known| known.name == name).is_some_and(|known| known.is_used)
    }

    fn read(&mut self, name: &str) -> Result<&Kind, String> {
        let Some(at) = self.0.iter().rposition(|known| known.name == name) else {
            let names: Vec<&str> = self.0.iter().map(|known| known.name.as_str()).collect();
            return Err(unknown("name", name, &names));
        };
        self.0[at].is_used = true;
        Ok(&self.0[at].value)
    }

    /// Returns the value of an expression. A name alone may be a text.
    ///
    /// # Errors
    /// What is wrong, without the expression.
    pub fn value(&mut self, expression: &str) -> Result<Kind, String> {
        let name = expression.trim();
        if !is_word(name) {
            return self.number(expression).map(Kind::Integer);
        }
        match self.read(name)? {
            Kind::List(_) => Err(format!("'{name}' is an array")),
            value => Ok(value.clone()),
        }
    }

    /// Returns the value of an expression that is a whole number.
    ///
    /// # Errors
    /// What is wrong, without the expression.
    pub fn number(&mut self, expression: &str) -> Result<i64, String> {
        let mut parser = Parser { rest: expression, scope: self, depth: 0 };
        let number = parser.sum()?;
        match parser.next() {
            None => Ok(number),
            Some(found) => Err(format!("expected an operator, found '{found}'")),
        }
    }
}

fn is_word(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|next| next.is_ascii_alphanumeric() || next == '_')
}

struct Parser<'a> {
    rest: &'a str,
    scope: &'a mut Scope,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    /// Takes the next character if it is one of `wanted`, which are ASCII.
    fn take(&mut self, wanted: &str) -> Option<char> {
        let found = self.next().filter(|next| wanted.contains(*next));
        self.rest = &self.rest[usize::from(found.is_some())..];
        found
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut left = self.product()?;
        while let Some(operator) = self.take("+-") {
            left = applied(operator, left, self.product()?)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut left = self.factor()?;
        while let Some(operator) = self.take("*/%") {
            left = applied(operator, left, self.factor()?)?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<i64, String> {
        let Some(sign) = self.take("-(") else { return self.atom() };
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("more than {DEEPEST} parentheses and signs in one another"));
        }
        let inner = match sign {
            '-' => applied('-', 0, self.factor()?)?,
            _ => {
                let inner = self.sum()?;
                self.take(")").ok_or("a parenthesis is not closed")?;
                inner
            }
        };
        self.depth -= 1;
        Ok(inner)
    }

    fn atom(&mut self) -> Result<i64, String> {
        let found = self.next();
        let end = self.rest.find(|next: char| !(next.is_ascii_alphanumeric() || next == '_'));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        if word.is_empty() {
            let found = found.map_or("the end".to_owned(), |next| format!("'{next}'"));
            return Err(format!("expected a whole number or a name, found {found}"));
        }
        if !is_word(word) {
            return word.parse().map_err(|_| format!("invalid whole number '{word}'"));
        }
        match self.scope.read(word)? {
            Kind::Integer(number) => Ok(*number),
            Kind::Text(text) => Err(format!("'{word}' is the text '{text}', not a whole number")),
            _ => Err(format!("'{word}' is not a whole number")),
        }
    }
}

/// Applies an operator. As in a ring, a remainder is never negative for a positive divisor.
fn applied(operator: char, left: i64, right: i64) -> Result<i64, String> {
    let result = match operator {
        '+' => left.checked_add(right),
        '-' => left.checked_sub(right),
        '*' => left.checked_mul(right),
        _ if right == 0 => return Err("division by zero".to_owned()),
        '/' => left.checked_div_euclid(right),
        _ => left.checked_rem_euclid(right),
    };
    result.ok_or_else(|| format!("{left} {operator} {right} exceeds 64 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Result<i64, String> {
        let mut scope = Scope::default();
        scope.push("n", Kind::Integer(10));
        scope.push("word", Kind::Text("abc".to_owned()));
        scope.number(text)
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("20 - 5 - 3", 12),
            ("100 / 7 % 5", 4),
            ("-n + 3", -7),
            ("2 * -3", -6),
            ("(n + 9*17) % n + 1", 4),
            ("(1 - 2) % n", 9),
            ("(1 - 2) / n", -1),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn mistakes_name_what_is_wrong() {
        let deep = "(".repeat(100_000);
        for (text, expected) in [
            ("m", "unknown name 'm'; did you mean 'n'? There are: n, word"),
            ("word + 1", "'word' is the text 'abc', not a whole number"),
            ("1 / (n - 10)", "division by zero"),
            ("n % 0", "division by zero"),
            ("n = 3", "expected an operator, found '='"),
            ("1 +", "expected a whole number or a name, found the end"),
            ("(1 + é)", "expected a whole number or a name, found 'é'"),
            ("(1", "a parenthesis is not closed"),
            ("1e3", "invalid whole number '1e3'"),
            ("9223372036854775807 + 1", "9223372036854775807 + 1 exceeds 64 bits"),
            (&deep, "more than 32 parentheses and signs in one another"),
        ] {
            assert_eq!(value(text), Err(expected.to_owned()), "{text}");
        }
    }

    /// Returns an expression with a parenthesis around each operation, and its value.
    fn expression() -> impl Strategy<Value = (String, i128)> {
        let leaf = (0i64..100).prop_map(|number| (number.to_string(), i128::from(number)));
        leaf.prop_recursive(4, 16, 2, |inner| {
            let operator = prop::sample::select(vec!['+', '-', '*', '/', '%']);
            (inner.clone(), operator, inner).prop_filter_map("a divisor", |(a, operator, b)| {
                let (x, y) = (a.1, b.1);
                let value = match operator {
                    '+' => x + y,
                    '-' => x - y,
                    '*' => x * y,
                    '/' => x.checked_div_euclid(y)?,
                    _ => x.checked_rem_euclid(y)?,
                };
                let fits = i64::try_from(value).is_ok();
                fits.then(|| (format!("({} {operator} {})", a.0, b.0), value))
            })
        })
    }

    proptest! {
        #[test]
        fn value_equals_that_of_exact_arithmetic((text, expected) in expression()) {
            prop_assert_eq!(value(&text).map(i128::from), Ok(expected));
        }

        #[test]
        fn no_text_panics(text in "[-+*/%()n0-9 a=.é]{0,20}") {
            let _ = value(&text);
        }
    }
}
