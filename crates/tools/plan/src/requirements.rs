//! Requirements of a plan: deadlines of hosts, drives and streams, and permitted losses of streams.

use super::network::Layout;
use super::owners::Owners;
use super::traffic::{Stream, listener_name};
use keys::{KeyError, Mistakes, Section};
use sim::ethernet::traffic::StreamId;
use sim::workload::Workload;
use stats::random::Probability;
use wire::Duration;

/// A requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Name in the results, such as `host front` or `stream camera loss`.
    pub name: String,
    /// The host, drive or stream that must meet the requirement.
    pub subject: Subject,
    /// The required bound.
    pub bound: Bound,
}

/// A host, drive or stream that must meet a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Every command of this host.
    Host(usize),
    /// Every command of a host to one of its drives.
    Drive {
        /// The host.
        host: usize,
        /// Index of the drive among the host's drives.
        drive: usize,
    },
    /// Every frame of a stream at one listener.
    Stream {
        /// The stream.
        id: StreamId,
        /// Index of the listener.
        listener: usize,
    },
}

/// A required bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Maximum latency of each command or frame.
    Deadline(Duration),
    /// Maximum share of lost frames.
    Loss(Probability),
}

/// Reads the requirements of all hosts, drives and streams.
pub(super) fn read(
    owners: &Owners<'_>,
    Layout { config: network, names, streams, .. }: &Layout,
    workloads: &[&Workload],
) -> Result<Vec<Requirement>, KeyError> {
    let mut all = Vec::new();
    let mut mistakes = Mistakes::default();
    let mut add = |name: String, subject, bound: Option<Bound>| {
        all.extend(bound.map(|bound| Requirement { name, subject, bound }));
    };
    for (number, host) in owners.hosts.iter().enumerate() {
        let deadline = |section: &Section<'_>| -> Result<_, KeyError> {
            let found: Option<Duration> = section.get("deadline");
            if found.is_some() && matches!(workloads[number], Workload::ConfigReads { .. }) {
                let message = "'deadline' applies only to commands, and configreads has none";
                return section.fail("deadline", message);
            }
            Ok(found.map(Bound::Deadline))
        };
        add(
            format!("host {}", host.name),
            Subject::Host(number),
            mistakes.keep(deadline(&host.section)).flatten(),
        );
        let drives = host.drives.iter().flat_map(|drive| {
            let section = &owners.drives[*drive].section;
            owners.names(*drive).into_iter().map(move |name| (name, section))
        });
        for (drive, (name, section)) in drives.enumerate() {
            let subject = Subject::Drive { host: number, drive };
            add(format!("drive {name}"), subject, mistakes.keep(deadline(section)).flatten());
        }
    }
    for Stream { name, id, loss, .. } in streams {
        let listeners = &network.stream(*id).listeners;
        for (listener, to) in listeners.iter().enumerate() {
            let subject = Subject::Stream { id: *id, listener };
            let name = listener_name(name, listeners.len(), &names[to.station]);
            add(format!("stream {name}"), subject, to.deadline.map(Bound::Deadline));
            add(format!("stream {name} loss"), subject, loss.map(Bound::Loss));
        }
    }
    mistakes.or(all)
}
