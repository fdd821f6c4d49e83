//! Numbers of points as text: `0-9,12`.

/// Returns ascending numbers as text.
pub fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let text = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    };
    runs.map(text).collect::<Vec<_>>().join(",")
}

/// Parses numbers.
///
/// # Errors
/// What is expected.
pub fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let expected = || format!("'{text}': expected numbers such as 0-9,12");
    let number = |text: &str| text.parse::<usize>().map_err(|_| expected());
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first || last - first > super::job::MOST {
            return Err(expected());
        }
        all.extend(first..=last);
    }
    Ok(all)
}
