//! Collects all mistakes of a file that one pass finds: reading continues after a wrong key or
//! table.

use crate::KeyError;

/// The mistakes so far.
#[derive(Debug, Default)]
pub struct Mistakes(Option<KeyError>);

impl Mistakes {
    /// Adds a mistake, with the mistakes that were found with it.
    pub fn note(&mut self, error: KeyError) {
        self.0 = Some(match self.0.take() {
            Some(known) => known.and(error),
            None => error,
        });
    }

    /// Returns the value of a result. Adds the mistake of an error, and returns `None`.
    pub fn keep<T>(&mut self, result: Result<T, KeyError>) -> Option<T> {
        result.map_err(|error| self.note(error)).ok()
    }

    /// Returns whether there are no mistakes.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns `value` if there is no mistake.
    ///
    /// # Errors
    /// All mistakes.
    pub fn or<T>(self, value: T) -> Result<T, KeyError> {
        self.0.map_or(Ok(value), Err)
    }
}

/// Collects the values of several results.
///
/// # Errors
/// The mistakes of all results.
pub fn all<T>(results: impl IntoIterator<Item = Result<T, KeyError>>) -> Result<Vec<T>, KeyError> {
    let mut mistakes = Mistakes::default();
    let found = results.into_iter().filter_map(|result| mistakes.keep(result)).collect();
    mistakes.or(found)
}

/// What two readers found.
///
/// # Errors
/// The mistakes of both.
pub fn both<A, B>(
    first: Result<A, KeyError>,
    second: Result<B, KeyError>,
) -> Result<(A, B), KeyError> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) => Err(first.and(second)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}
