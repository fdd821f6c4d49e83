//! Measured distributions: the documents of `farlane live --json`, `farlane latency listen --json`
//! and `farlane latency lab --json`.

use serde_json::Value;

/// A measured distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Name of the host or stream in the plan.
    pub name: String,
    /// Shares of the samples, with the latency in nanoseconds that they do not exceed.
    pub shares: Vec<(f64, u64)>,
    /// The longest latency.
    pub max_ns: u64,
}

/// Reads a document. `name` is the host or stream that it measured, needed for documents of one
/// stream.
///
/// # Errors
/// Why the text is no document with latencies.
pub fn read(text: &str, name: Option<&str>) -> Result<Vec<Measured>, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for host in array(&document, "hosts") {
        let own = host["host"].as_str().unwrap_or_default();
        all.extend(of_summary(name.unwrap_or(own), &host["latency_ns"]));
    }
    for stream in array(&document, "streams") {
        let own = stream["name"].as_str().unwrap_or_default();
        for listener in array(stream, "listeners") {
            all.extend(of_summary(name.unwrap_or(own), &listener["latency_ns"]));
        }
    }
    let runs = array(&document, "bridges").flat_map(|bridge| array(bridge, "runs"));
    let listens = runs.map(|run| &run["listen"]).chain([&document]);
    for listen in listens {
        let Some(segment) = array(listen, "segments").next() else { continue };
        let name = name.ok_or("the document does not name a stream: give STREAM=FILE")?;
        all.extend(of_histogram(name, &segment["histogram"]));
    }
    if all.is_empty() {
        return Err(
            "no latencies: expected a document of live, latency listen or latency lab".into()
        );
    }
    Ok(all)
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[key].as_array().map_or(&[][..], Vec::as_slice).iter()
}

fn of_summary(name: &str, summary: &Value) -> Option<Measured> {
    let max_ns = summary["max"].as_u64().filter(|max| *max > 0)?;
    let quantiles = [("min", 0.0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];
    let share = |(key, share): (&str, f64)| Some((share, summary[key].as_u64()?));
    let shares = quantiles.into_iter().filter_map(share).chain([(1.0, max_ns)]).collect();
    Some(Measured { name: name.to_owned(), shares, max_ns })
}

fn of_histogram(name: &str, bars: &Value) -> Option<Measured> {
    let bars = bars.as_array()?;
    let count = |bar: &Value| bar["n"].as_u64().unwrap_or(0);
    let all: u64 = bars.iter().map(count).sum();
    let mut sum = 0;
    let mut shares = Vec::new();
    for bar in bars.iter().filter(|bar| count(bar) > 0) {
        sum += count(bar);
        shares.push((sum as f64 / all.max(1) as f64, bar["to_ns"].as_u64()?));
    }
    let max_ns = shares.last()?.1;
    Some(Measured { name: name.to_owned(), shares, max_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_live_runs_and_of_listeners_are_read() {
        let live = r#"{"hosts":[{"host":"h","latency_ns":{"min":1,"p50":5,"p90":6,"p99":8,
            "p99_9":9,"max":12}}],"streams":[]}"#;
        let host = read(live, None).unwrap().remove(0);
        assert_eq!((host.name.as_str(), host.max_ns), ("h", 12));
        assert_eq!(host.shares[1], (0.5, 5));
        let listen = r#"{"segments":[{"histogram":[{"from_ns":0,"to_ns":10,"n":3},
            {"from_ns":10,"to_ns":20,"n":1}]}]}"#;
        let stream = read(listen, Some("brake")).unwrap().remove(0);
        assert_eq!((stream.shares.as_slice(), stream.max_ns), (&[(0.75, 10), (1.0, 20)][..], 20));
        assert!(read(listen, None).unwrap_err().contains("STREAM=FILE"));
        assert!(read("{}", None).unwrap_err().contains("no latencies"));
        assert!(read("no", None).is_err());
    }
}
