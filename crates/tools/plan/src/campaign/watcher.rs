//! Observes the run of a seed.

use super::fault::Kind;
use super::order::Order;
use super::reached::Condition;
use node::faults::FaultKind;
use sim::Config;
use sim::measure::{LinkChange, Observer, Point};
use sim::world::DisturbanceKind;
use std::collections::{BTreeMap, BTreeSet};
use wire::Instant;
use wire::tlp::Tlp;

/// What happened in a run so far.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    order: Order,
    /// The host of each tunnel link, and whether a drive is at its end.
    links: Vec<(u16, bool)>,
    /// Times at which a driver resets its drives, in order, with the host.
    resets: Vec<(Instant, u16)>,
    interrupted: BTreeSet<Point>,
    /// The first law that was broken.
    pub broken: Option<String>,
    /// How often a link of each host went down.
    pub downs: BTreeMap<u16, u64>,
    pub reached: BTreeSet<Condition>,
    /// How often faults of nodes and drives began to act.
    pub acted: BTreeMap<Kind, u64>,
}

impl Watcher {
    pub fn new(config: &Config) -> Self {
        let hosts = config.hosts.iter().zip(0..);
        let links = hosts.flat_map(|(host, number)| {
            host.links().into_iter().map(move |link| (number, link.drive.is_some()))
        });
        let resets = config.disturbances.iter().filter_map(|one| match one.kind {
            DisturbanceKind::DriveReset(host) => Some((one.at, host as u16)),
            _ => None,
        });
        let mut resets: Vec<_> = resets.collect();
        resets.sort_unstable();
        Self { links: links.collect(), resets, ..Self::default() }
    }

    /// Records a broken law, unless another one was broken before.
    pub fn require(&mut self, at: Instant, holds: Result<(), String>) {
        if let (None, Err(why)) = (&self.broken, holds) {
            self.broken = Some(format!("{why} at {at}"));
        }
    }

    pub fn reach(&mut self, condition: Condition, is_reached: bool) {
        if is_reached {
            self.reached.insert(condition);
        }
    }

    fn host_of(&self, link: u16) -> u16 {
        self.links.get(usize::from(link)).map_or(0, |(host, _)| *host)
    }

    /// TLPs of the host may be lost from now on.
    fn lose(&mut self, point: Point) {
        if let Point::DevicePort(link) = point {
            self.order.lossy.insert(self.host_of(link));
        }
    }

    /// Handles the resets of drivers that have begun.
    fn pass_resets(&mut self, now: Instant) {
        while let Some((_, host)) = self.resets.first().filter(|(at, _)| *at <= now).copied() {
            self.resets.remove(0);
            self.order.lossy.insert(host);
            let is_own = |point: &Point| match point {
                Point::TunnelHost(link) => self.host_of(*link) == host,
                _ => false,
            };
            let waits = self.interrupted.iter().any(is_own);
            self.reach(Condition::ResetWhileInterrupted, waits);
        }
    }
}

impl Observer for Watcher {
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {
        self.pass_resets(at);
        let (host, near) = match point {
            Point::RootPort(host) => (host, !up),
            Point::DevicePort(link) if self.links[usize::from(link)].1 => (self.host_of(link), up),
            _ => return,
        };
        let checked = match up {
            true => self.order.up(host, near, tlp),
            false => self.order.down(host, near, tlp),
        };
        self.require(at, checked);
    }

    fn link(&mut self, at: Instant, point: Point, change: LinkChange) {
        self.pass_resets(at);
        let link = match point {
            Point::TunnelHost(link) | Point::TunnelDevice(link) => link,
            _ => return,
        };
        let host = self.host_of(link);
        match change {
            LinkChange::Interrupted => {
                self.interrupted.insert(point);
                self.reach(Condition::Interrupted, true);
            }
            LinkChange::Resumed => {
                self.interrupted.remove(&point);
                self.reach(Condition::Resumed, true);
            }
            LinkChange::Down => {
                let gave_up = self.interrupted.remove(&point);
                self.reach(Condition::GivenUp, gave_up);
                self.order.lossy.insert(host);
                if matches!(point, Point::TunnelHost(_)) {
                    *self.downs.entry(host).or_default() += 1;
                }
            }
            LinkChange::Up => self.reach(Condition::BackAgain, self.downs.contains_key(&host)),
        }
    }

    fn fault(&mut self, _: Instant, point: Point, fault: &node::faults::Fault) {
        let kind = match fault.kind {
            FaultKind::Late(_) => Kind::LateMedia,
            FaultKind::Error(_) => Kind::MediaError,
            FaultKind::LostCompletion => Kind::LostCompletion,
            // An outage or a kill, which loses TLPs.
            _ => return self.lose(point),
        };
        *self.acted.entry(kind).or_default() += 1;
        if kind == Kind::LostCompletion {
            self.lose(point);
        }
    }
}
