//! OpenMetrics text of a node's state, with names by the conventions of Prometheus. Labels have only
//! values that the node's options bound, never what a peer sends.

use crate::document::{NodeDocument, NodeState};
use live::status::{CommandStatus, Counts, LinkState, LinkStatus};
use nvme::times::BOUNDS_US;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType::{self, Counter, Gauge};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// The media type of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Bytes per unit of the SMART log (NVMe 1.4, figure 194, as the node counts them).
const UNIT: f64 = 512.0;

/// The text that Prometheus scrapes.
pub fn text(node: NodeDocument) -> String {
    let mut registry = Registry::with_prefix("farlane");
    registry.register_collector(Box::new(Scrape(node)));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a String takes everything");
    text
}

#[derive(Debug)]
struct Scrape(NodeDocument);

type Labels<'a> = &'a [(&'a str, &'a str)];

/// A family of counters or gauges that is being written.
struct Family<'a>(MetricType, MetricEncoder<'a>);

impl Family<'_> {
    /// Adds a value; a counter is exact below 2^53, as in Prometheus.
    fn add(&mut self, labels: Labels<'_>, value: f64) -> fmt::Result {
        let Self(kind, encoder) = self;
        let encode = |encoder: &mut MetricEncoder<'_>| match kind {
            Counter => encoder.encode_counter::<NoLabelSet, _, u64>(&(value as u64), None),
            _ => encoder.encode_gauge(&value),
        };
        match labels {
            [] => encode(encoder),
            _ => encode(&mut encoder.encode_family(&labels)?),
        }
    }
}

/// Begins a family.
fn family<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    kind: MetricType,
    name: &'a str,
    unit: Option<&'a Unit>,
    help: &str,
) -> Result<Family<'a>, fmt::Error> {
    Ok(Family(kind, encoder.encode_descriptor(name, help, unit, kind)?))
}

/// A counter by its name, 0 if the node has none.
fn of(counts: &Counts, name: &str) -> f64 {
    counts.get(name).copied().unwrap_or(0) as f64
}

/// Counters of a link: name of the metric, unit, name of the counter, help.
type Row = (&'static str, Option<&'static Unit>, &'static str, &'static str);

const TRAFFIC: [Row; 11] = [
    ("link_connections", None, "connections", "Number of times the link came up"),
    ("link_resumed", None, "resumed", "Number of times the link went on over another connection"),
    ("link_failovers", None, "failovers", "Number of times another path took over"),
    ("link_resent_frames", None, "frames_sent_again", "Frames sent again over another connection"),
    ("link_duplicate_frames", None, "copies", "Received frames that another path had delivered"),
    ("link_sent_frames", None, "frames_sent", "Frames of TLPs sent, each counted once"),
    ("link_sent_tlps", None, "tlps_sent", "TLPs sent"),
    ("link_sent", Some(&Unit::Bytes), "bytes_sent", "Bytes sent, headers included"),
    ("link_received_frames", None, "frames_received", "Frames of TLPs received"),
    ("link_received_tlps", None, "tlps_received", "TLPs received"),
    ("link_received", Some(&Unit::Bytes), "bytes_received", "Bytes received, headers included"),
];

const PUSH: [Row; 6] = [
    ("push_hits", None, "hits", "Reads of the drive that pushed bytes answered"),
    ("push_misses", None, "misses", "Reads of the drive that the host answered"),
    ("push_taken", Some(&Unit::Bytes), "pushed_bytes", "Bytes taken from push messages"),
    ("push_hit", Some(&Unit::Bytes), "hit_bytes", "Bytes of reads that pushed bytes answered"),
    ("push_unused", Some(&Unit::Bytes), "unused_bytes", "Pushed bytes that no read needed"),
    ("push_malformed", None, "malformed", "Malformed push messages"),
];

const REJECTED: [Row; 4] = [
    ("rejected_peers", None, "turned_away", "Peers that were rejected"),
    ("silent_peers", None, "without_greeting", "Peers that closed without a greeting"),
    ("moves_granted", None, "moves_granted", "Granted requests to move the device"),
    ("moves_refused", None, "moves_refused", "Refused requests to move the device"),
];

const SENT_PUSH: [Row; 4] = [
    ("pushed_messages", None, "messages", "Push messages sent"),
    ("pushed_entries", None, "entries", "Submission queue entries pushed"),
    ("unpushed_entries", None, "unpushed", "Submission queue entries without push"),
    ("pushed", Some(&Unit::Bytes), "bytes", "Bytes of entries, lists and data pushed"),
];

const DRIVE: [Row; 6] = [
    ("drive_read_commands", None, "reads", "Read commands completed, over the life of the drive"),
    (
        "drive_write_commands",
        None,
        "writes",
        "Write commands completed, over the life of the drive",
    ),
    ("drive_media_errors", None, "media_errors", "Media and data integrity errors"),
    ("drive_error_log_entries", None, "error_log_entries", "Entries of the error log"),
    ("drive_power_cycles", None, "power_cycles", "Power cycles"),
    ("drive_unsafe_shutdowns", None, "unsafe_shutdowns", "Losses of power without a shutdown"),
];

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        self.node(encoder)?;
        self.links(encoder)?;
        self.commands(encoder)?;
        self.drive(encoder)?;
        self.host(encoder)
    }
}

impl Scrape {
    fn node(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let node = &self.0;
        let labels: Labels<'_> = &[("role", &node.role), ("version", &node.version)];
        encoder
            .encode_descriptor("node", "Role and version", None, MetricType::Info)?
            .encode_info(&labels)?;
        let help = "Whether all threads of the node answer";
        let serves = f64::from(u8::from(node.state == NodeState::Serving));
        family(encoder, Gauge, "node_serving", None, help)?.add(&[], serves)?;
        let help = "Time since the start of the node";
        family(encoder, Gauge, "node_uptime", Some(&Unit::Seconds), help)?
            .add(&[], node.uptime_ns as f64 / 1e9)
    }

    /// One family of counters with a value per link that has this group of counters.
    fn per_link<'a>(
        &'a self,
        encoder: &mut DescriptorEncoder<'_>,
        rows: &[Row],
        counts: impl Fn(&'a LinkStatus) -> &'a Counts,
    ) -> fmt::Result {
        let links = || self.0.status.links.iter().filter(|link| !counts(link).is_empty());
        if links().next().is_none() {
            return Ok(());
        }
        for (name, unit, key, help) in rows {
            let mut family = family(encoder, Counter, name, *unit, help)?;
            for link in links() {
                family.add(&[("link", &link.name)], of(counts(link), key))?;
            }
        }
        Ok(())
    }

    fn links(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let links = &self.0.status.links;
        let mut up = family(encoder, Gauge, "link_up", None, "Whether the link carries TLPs")?;
        for link in links {
            let value = f64::from(u8::from(link.state == LinkState::Up));
            up.add(&[("link", &link.name)], value)?;
        }
        let help = "Smoothed round trip of the TCP connection";
        let mut times = family(encoder, Gauge, "link_round_trip", Some(&Unit::Seconds), help)?;
        for (link, time) in links.iter().filter_map(|link| Some((link, link.round_trip_ns?))) {
            times.add(&[("link", &link.name)], time as f64 / 1e9)?;
        }
        let help = "Free data credits for posted TLPs";
        let mut bytes = family(encoder, Gauge, "link_credits", Some(&Unit::Bytes), help)?;
        let credits = || links.iter().filter_map(|link| Some((&*link.name, link.credits?)));
        for (link, credits) in credits() {
            bytes.add(&[("link", link)], credits.data_bytes as f64)?;
        }
        let help = "How often TLPs waited for credits";
        let mut stalls = family(encoder, Counter, "link_credit_stalls", None, help)?;
        for (link, credits) in credits() {
            stalls.add(&[("link", link)], credits.stalls as f64)?;
        }
        self.per_link(encoder, &TRAFFIC, |link| &link.traffic)?;
        self.per_link(encoder, &PUSH, |link| &link.push)?;
        self.per_link(encoder, &REJECTED, |link| &link.rejected)?;
        self.errors(encoder, "link_errors", "Errors of a port, by their PCIe names", |link| {
            &link.errors
        })?;
        self.errors(encoder, "endpoint_errors", "Errors of a function", |link| {
            &link.endpoint_errors
        })
    }

    fn errors<'a>(
        &'a self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        errors: impl Fn(&'a LinkStatus) -> &'a Counts,
    ) -> fmt::Result {
        let mut family = family(encoder, Counter, name, None, help)?;
        for link in &self.0.status.links {
            for (error, count) in errors(link) {
                family.add(&[("link", &link.name), ("error", error)], *count as f64)?;
            }
        }
        Ok(())
    }

    fn commands(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let all = || {
            self.0
                .status
                .links
                .iter()
                .flat_map(|link| link.commands.iter().map(move |times| (&*link.name, times)))
        };
        if all().next().is_none() {
            return Ok(());
        }
        let help = "Time of an I/O command, from the arrival of its entry to its completion entry";
        let (name, unit) = ("command_duration", Some(&Unit::Seconds));
        let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        let bounds = BOUNDS_US.map(|us| us as f64 / 1e6).into_iter().chain([f64::MAX]);
        for (link, times) in all() {
            let CommandStatus { bins, kind, sum_ns } = times;
            let bins: Vec<_> = bounds.clone().zip(bins.iter().copied()).collect();
            let labels: Labels<'_> = &[("link", link), ("kind", kind)];
            let mut one = family.encode_family(&labels)?;
            one.encode_histogram::<NoLabelSet>(*sum_ns as f64 / 1e9, times.count(), &bins, None)?;
        }
        Ok(())
    }

    fn drive(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(drive) = &self.0.status.drive else { return Ok(()) };
        let labels: Labels<'_> = &[("serial", &drive.serial), ("model", &drive.model)];
        encoder
            .encode_descriptor("drive", "Serial and model number", None, MetricType::Info)?
            .encode_info(&labels)?;
        let help = "Critical warning byte of the SMART log; 0: healthy";
        family(encoder, Gauge, "drive_critical_warning", None, help)?
            .add(&[], drive.critical_warning.into())?;
        let size: u64 = drive.namespaces.iter().map(|namespace| namespace.size_bytes).sum();
        let help = "Size of all namespaces together";
        family(encoder, Gauge, "drive_size", Some(&Unit::Bytes), help)?.add(&[], size as f64)?;
        for (name, unit, key, help) in DRIVE {
            family(encoder, Counter, name, unit, help)?.add(&[], of(&drive.counters, key))?;
        }
        for (name, key, help) in [
            ("drive_read", "units_read", "Bytes read, over the life of the drive"),
            ("drive_written", "units_written", "Bytes written, over the life of the drive"),
        ] {
            let bytes = of(&drive.counters, key) * UNIT;
            family(encoder, Counter, name, Some(&Unit::Bytes), help)?.add(&[], bytes)?;
        }
        Ok(())
    }

    fn host(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.0.status;
        if let Some(push) = &status.push {
            for (name, unit, key, help) in SENT_PUSH {
                family(encoder, Counter, name, unit, help)?.add(&[], of(&push.counters, key))?;
            }
            let help = "Commands that were not pushed, or only in part";
            let mut family = family(encoder, Counter, "unpushed_commands", None, help)?;
            for (reason, commands) in &push.not_pushed {
                family.add(&[("reason", reason)], *commands as f64)?;
            }
        }
        if status.endpoints.is_empty() {
            return Ok(());
        }
        let mut used = family(encoder, Gauge, "endpoint_used", None, "Whether a VMM is connected")?;
        for endpoint in &status.endpoints {
            let number = endpoint.number.to_string();
            used.add(&[("endpoint", &number)], f64::from(u8::from(endpoint.used)))?;
        }
        let help = "Accesses to memory that the VMM has not mapped";
        let mut faults = family(encoder, Counter, "endpoint_dma_faults", None, help)?;
        for endpoint in &status.endpoints {
            let number = endpoint.number.to_string();
            faults.add(&[("endpoint", &number)], endpoint.dma_faults as f64)?;
        }
        Ok(())
    }
}
