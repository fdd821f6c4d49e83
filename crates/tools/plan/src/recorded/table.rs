//! CSV and Parquet files with a column of times and a column of lengths.

use super::{Packet, Packets};
use columns::Rows;
use std::fs::File;

/// Names of the column of times, with the decimal places of a picosecond in its unit.
const TIMES: [(&str, usize); 4] = [("time", 12), ("time_ms", 9), ("time_us", 6), ("time_ns", 3)];

const LENGTH: &str = "length";

/// Returns the rows of a file.
pub fn packets(file: File) -> Result<Packets, String> {
    let rows = Rows::open(file).map_err(|error| error.to_string())?;
    let column = |name: &str| rows.names.iter().position(|own| own == name);
    let time = TIMES.iter().find_map(|(name, places)| Some((column(name)?, *places)));
    let (time, places) = time.ok_or_else(|| {
        let names = TIMES.map(|(name, _)| name).join(", ");
        format!("no column of times. Expected a capture, or columns {LENGTH} and one of: {names}")
    })?;
    let length = column(LENGTH).ok_or_else(|| format!("no column {LENGTH}"))?;
    let rows = rows.of(&[time, length]).map_err(|error| error.to_string())?;
    let mut before = "the first line".to_owned();
    Ok(Box::new(rows.map(move |row| {
        let (place, cells) = row.map_err(|error| format!("after {before}: {error}"))?;
        before.clone_from(&place);
        let [time, length] = [&cells[0], &cells[1]];
        let invalid = |key: &str, cell: &str| format!("{place}: invalid {key} '{cell}'");
        let at = picoseconds(time, places).ok_or_else(|| invalid("time", time))?;
        let length = length.parse().map_err(|_| invalid(LENGTH, length))?;
        Ok(Packet { place, at, length })
    })))
}

/// Converts a time in a unit of 10^`places` ps. Digits below a picosecond are dropped.
fn picoseconds(text: &str, places: usize) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let scale = 10_u128.pow(places as u32);
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        // Numbers such as 1.5e-05.
        let number: f64 = text.parse().ok().filter(|number| (0.0..1e15).contains(number))?;
        return Some((number * scale as f64).round() as u128);
    }
    let fraction = format!("{fraction:0<places$.places$}");
    whole
        .parse::<u64>()
        .ok()
        .map(|whole| u128::from(whole) * scale)?
        .checked_add(fraction.parse().ok()?)
}
