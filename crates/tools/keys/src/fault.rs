//! Planned faults in plans and options.

use crate::unknown;
use node::faults::{Fault, InvalidFault};

/// Parses a fault such as `late=5ms,at=2s`.
///
/// # Errors
/// One sentence for the user, with the nearest word for an unknown one.
pub fn fault(text: &str) -> Result<Fault, String> {
    text.parse().map_err(|error| match error {
        InvalidFault::Word(word) => unknown("word of a fault", &word, &Fault::WORDS),
        InvalidFault::Status(word) => unknown("error of a fault", &word, &Fault::STATUSES),
        InvalidFault::Other(message) => message,
    })
}

/// Parses a fault of a drive.
///
/// # Errors
/// As [`fault`], and for faults of a node.
pub fn drive_fault(text: &str) -> Result<Fault, String> {
    let found = fault(text)?;
    if found.kind.is_of_drive() {
        return Ok(found);
    }
    let message = "is a fault of a node: expected late, error, lost-completion or poison; plans have \
                   'outages' of nodes and 'cuts' of cables";
    Err(format!("'{text}' {message}"))
}

/// Parses a fault of a node and its link.
///
/// # Errors
/// As [`fault`], and for faults of a drive.
pub fn node_fault(text: &str) -> Result<Fault, String> {
    let found = fault(text)?;
    match found.kind.is_of_drive() {
        false => Ok(found),
        true => Err(format!("'{text}' is a fault of a drive: expected link-down or stop")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_value_and_the_nearest_word() {
        let error = |text| fault(text).expect_err(text);
        assert!(
            error("latte=5ms").starts_with("unknown word of a fault 'latte'; did you mean 'late'?")
        );
        assert!(error("error=medi").contains("'medi'; did you mean 'media'? There are: media, "));
        assert_eq!(error("late=5"), "late=5: expected a time such as 5ms, up to 1000000s");
        assert!(drive_fault("stop").is_err() && node_fault("stop").is_ok());
        assert!(drive_fault("poison").is_ok() && node_fault("poison").is_err());
    }
}
