//! Results of several seeds of one plan: means with confidence intervals, and merged latencies.

use super::document::{Listener, SimLatency, SimReport, Stream};
use super::text::us;
use crate::simulate::contention::Contention;
use report::Align::{Left, Right};
use report::document::rounded;
use report::{Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Latency, MeanEstimate};

/// Measurements of a simulation that its document only summarises.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Measured {
    /// Number of finished commands.
    pub commands: u64,
    /// Latency of the transfers by host.
    pub hosts: Vec<(String, Latency)>,
    /// Latency of the frames by stream and listener.
    pub streams: Vec<Latency>,
    /// The reason why the commands are not in the tables.
    #[serde(skip)]
    pub part_failed: Option<String>,
    /// What hosts and listeners met, for a search.
    #[serde(skip)]
    pub contention: Vec<Contention>,
}

/// Results over all seeds. Each mean is the mean of the values of the seeds.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct OverSeeds {
    /// Number of seeds.
    pub seeds: usize,
    /// Mean latency of the transfers of all hosts; null without hosts.
    pub mean_latency_ns: Option<Estimate>,
    /// Transfers per second of all hosts; null without hosts.
    pub iops: Option<Estimate>,
    /// Bytes per second of all hosts; null without hosts.
    pub bytes_per_s: Option<Estimate>,
    /// Latency of the transfers of all hosts and seeds together. Percentiles are of all samples,
    /// not means of percentiles.
    pub latency_ns: SimLatency,
    /// The streams, in the order of the plan, once for each listener.
    pub streams: Vec<StreamOverSeeds>,
}

/// A stream at one of its listeners over all seeds.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct StreamOverSeeds {
    /// Name of the stream; of a stream with several listeners `NAME at LISTENER`.
    pub name: String,
    /// Sum of the frames that the application of the sender sent.
    pub sent: u64,
    /// Sum of the frames that were dropped.
    pub lost: u64,
    /// Sum of the frames that missed `deadline`.
    pub late: u64,
    /// Mean latency of the frames.
    pub mean_latency_ns: Estimate,
    /// Latency of the frames of all seeds together.
    pub latency_ns: SimLatency,
}

/// The mean of one value per seed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n - 1).
    pub deviation: f64,
    /// Lower and upper end of the 95 % confidence interval of the mean (Student's t), for normally
    /// distributed values.
    pub confidence_95: [f64; 2],
}

impl Estimate {
    fn new(values: impl Iterator<Item = u64>) -> Option<Self> {
        let values: Vec<f64> = values.map(|value| value as f64).collect();
        let MeanEstimate { mean, deviation, half_width } = MeanEstimate::new(&values)?;
        let confidence_95 = [mean - half_width?, mean + half_width?].map(|end| rounded(end, 3));
        Some(Self { mean: rounded(mean, 3), deviation: rounded(deviation, 3), confidence_95 })
    }
}

/// Returns the latency of several series together. Jitter counts only consecutive samples of one
/// series.
pub fn merged<'a>(series: impl IntoIterator<Item = &'a Latency>) -> SimLatency {
    let (mut all, mut steps, mut count) = (Latency::default(), 0, 0);
    for one in series {
        all.merge(one);
        let stats::Summary { n, jitter_ns, .. } = one.summary();
        steps += u128::from(jitter_ns) * u128::from(n.saturating_sub(1));
        count += 1;
    }
    let pairs = all.count().saturating_sub(count).max(1);
    SimLatency { jitter: (steps / u128::from(pairs)) as u64, ..all.summary().into() }
}

impl OverSeeds {
    /// Summarises the documents of the seeds; `None` if there are fewer than two.
    pub fn new(all: &[SimReport]) -> Option<Self> {
        let [first, _, ..] = all else { return None };
        let has_hosts = !first.hosts.is_empty();
        let of_hosts = |value: fn(&SimReport) -> u64| {
            Estimate::new(all.iter().map(value)).filter(|_| has_hosts)
        };
        let hosts = all.iter().flat_map(|document| &document.measured.hosts);
        let rows: Vec<Vec<_>> = all.iter().map(SimReport::stream_rows).collect();
        let stream = |(at, (name, ..)): (usize, &(String, &Stream, &Listener))| {
            let series = all.iter().map(|document| &document.measured.streams[at]);
            let sum = |count: &dyn Fn(&(String, &Stream, &Listener)) -> u64| {
                rows.iter().map(|row| count(&row[at])).sum()
            };
            let means = rows.iter().map(|row| row[at].2.latency_ns.mean);
            Some(StreamOverSeeds {
                name: name.clone(),
                sent: sum(&|(_, stream, _)| stream.sent),
                lost: sum(&|(.., listener)| listener.lost),
                late: sum(&|(.., listener)| listener.late),
                mean_latency_ns: Estimate::new(means)?,
                latency_ns: merged(series),
            })
        };
        Some(Self {
            seeds: all.len(),
            mean_latency_ns: of_hosts(|document| document.latency_ns.mean),
            iops: of_hosts(|document| document.iops),
            bytes_per_s: of_hosts(|document| document.bytes_per_s),
            latency_ns: merged(hosts.map(|(_, latency)| latency)),
            streams: rows[0].iter().enumerate().filter_map(stream).collect(),
        })
    }

    /// Formats the results as text.
    pub fn text(&self) -> String {
        type Row<'a> = (String, &'a Estimate, &'a SimLatency);
        let columns: [Column<Row<'_>>; 8] = [
            ("latency in us", Left, |(name, ..)| name.clone()),
            ("n", Right, |(.., all)| all.n.to_string()),
            ("mean", Right, |(_, mean, _)| us(mean.mean as u64)),
            ("deviation", Right, |(_, mean, _)| us(mean.deviation as u64)),
            ("95 % interval", Right, |(_, mean, _)| interval_us(mean)),
            ("p50", Right, |(.., all)| us(all.p50)),
            ("p99", Right, |(.., all)| us(all.p99)),
            ("max", Right, |(.., all)| us(all.max)),
        ];
        let hosts = self.mean_latency_ns.as_ref();
        let hosts = hosts.map(|mean| ("all hosts".to_owned(), mean, &self.latency_ns));
        let streams = self.streams.iter().map(|stream| {
            (format!("stream {}", stream.name), &stream.mean_latency_ns, &stream.latency_ns)
        });
        let rows: Vec<Row<'_>> = hosts.into_iter().chain(streams).collect();
        let table = Table::from_rows(&columns, &rows).text();
        format!(
            "\nOver {} seeds: means of the seeds' means, percentiles of all samples\n{table}",
            self.seeds
        )
    }
}

/// Formats a confidence interval of nanoseconds as microseconds.
pub fn interval_us(estimate: &Estimate) -> String {
    let [low, high] = estimate.confidence_95.map(|end| us(end.max(0.0) as u64));
    format!("{low}–{high}")
}
