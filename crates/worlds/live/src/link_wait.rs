//! Waits for the links of a switch to come up.

use crate::attached::Switch;
use crate::links::LinkEvent;
use crate::{DeviceNode, Stop};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use wire::{Duration, Instant};

/// Default time limit for links: longer than a device node waits for its former host (12 s).
pub const PATIENCE: Duration = Duration::from_ms(15_000);

/// Links for which the node does not wait, and the function that reports each of them.
struct Absent {
    links: BTreeSet<usize>,
    tell: fn(&str),
}

/// Checks the links of a switch until all are up.
pub struct LinkWait {
    until: Instant,
    /// The cause of the last failed attempt, by link.
    last: BTreeMap<usize, String>,
    /// Links that will not come up soon, if the other links suffice.
    absent: Option<Absent>,
}

impl LinkWait {
    /// Starts to wait for at most `timeout`.
    pub fn new(now: Instant, timeout: Duration) -> Self {
        Self { until: now + timeout, last: BTreeMap::new(), absent: None }
    }

    /// Accepts fewer links: does not wait for nodes that reject this one, and for no node after the
    /// time limit. `tell` receives one line for each rejecting node.
    #[must_use]
    pub fn allow_missing(self, tell: fn(&str)) -> Self {
        Self { absent: Some(Absent { links: BTreeSet::new(), tell }), ..self }
    }

    /// Whether every link is up.
    ///
    /// # Errors
    /// When a link cannot come up, or after the time limit: one line that names each missing far
    /// side and the cause.
    pub fn check(&mut self, now: Instant, switch: &mut Switch) -> io::Result<bool> {
        while let Some(event) = switch.links_mut().event() {
            match event {
                LinkEvent::Failed { link, why, permanent: true, .. } => match &mut self.absent {
                    Some(absent) => {
                        if absent.links.insert(link) {
                            (absent.tell)(&format!("no link yet to {why}"));
                        }
                    }
                    None => return Err(io::Error::other(format!("no link to {why}"))),
                },
                LinkEvent::Failed { link, why, .. } => {
                    self.last.insert(link, why);
                }
                LinkEvent::Down { link, cause, .. } => {
                    let peer = switch.links_mut().peer(link);
                    self.last.insert(link, format!("{peer}: {cause}"));
                }
                LinkEvent::Up(..)
                | LinkEvent::Interrupted(..)
                | LinkEvent::Resumed(_)
                | LinkEvent::PathLost(..)
                | LinkEvent::PathUp(..)
                | LinkEvent::FailedOver(..)
                | LinkEvent::Echo(..) => {}
            }
        }
        let upstream = switch.upstream();
        let absent = |link| self.absent.as_ref().is_some_and(|absent| absent.links.contains(&link));
        if (0..upstream.links()).all(|link| upstream.tunnel(link).is_up() || absent(link)) {
            return Ok(true);
        }
        if now >= self.until && self.absent.is_some() {
            return Ok(true);
        }
        if now >= self.until {
            let down = (0..upstream.links()).filter(|link| !upstream.tunnel(*link).is_up());
            let down: Vec<usize> = down.collect();
            let why = down.into_iter().map(|link| self.why(link, switch)).collect::<Vec<_>>();
            return Err(io::Error::other(format!("no link to {}", why.join(", nor to "))));
        }
        Ok(false)
    }

    /// The far side of a link that is not up, and the cause.
    fn why(&self, link: usize, switch: &mut Switch) -> String {
        let silent = || format!("{}: no answer", switch.links_mut().peer(link));
        self.last.get(&link).cloned().unwrap_or_else(silent)
    }
}

/// Waits until every link of a switch node is up.
///
/// # Errors
/// As `LinkWait::check`, and when a stop is requested.
pub fn wait_for_links(node: &mut DeviceNode<Switch>, stop: &Stop) -> io::Result<()> {
    let mut links = LinkWait::new(node.clock().now(), PATIENCE);
    loop {
        if stop.is_set() {
            return Err(io::Error::other("interrupted by a signal"));
        }
        let now = node.clock().now();
        if links.check(now, node.attached_mut())? {
            return Ok(());
        }
        node.prepare()?;
    }
}
