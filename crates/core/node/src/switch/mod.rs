//! A switch node: a switch and the paths of its links.

use crate::link_state::{CONNECT_TIMEOUT, FRAME, Lane, Link, LinkEvent, Path};
use crate::path;
use ::switch::congestion::Rate;
use ::switch::egress::Egress;
use ::switch::tunnel::{self, Cause};
use ::switch::upstream::{LinkOutput, Settings, Upstream};
use bytes::Bytes;
use pcie::{Function, Ports, Ready};
use std::collections::{BTreeSet, VecDeque};
use wire::Instant;
use wire::earliest;

/// An action for the owner of a switch node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open a path for a link. Answer with [`path::Input::Connected`] or
    /// [`path::Input::Failed`], unless [`Output::Close`] comes first.
    Connect {
        /// The link.
        link: usize,
        /// The path of the link.
        lane: usize,
        /// Number of failed attempts before this one. If the peer has several addresses, each
        /// attempt uses the next.
        attempt: usize,
    },
    /// Write bytes to a link's path, which has room for them.
    Transmit {
        /// The link.
        link: usize,
        /// The path of the link.
        lane: usize,
        /// The bytes.
        bytes: Bytes,
    },
    /// Close the path of a link, or cancel the attempt, after sending what was
    /// transmitted. Later input of this path is ignored.
    Close {
        /// The link.
        link: usize,
        /// The path of the link.
        lane: usize,
        /// Why the tunnel closed the path, if it was connected.
        cause: Option<Cause>,
    },
    /// An event of a link.
    Event(LinkEvent),
    /// Nothing more now; poll after the next input (including room), after TLPs moved, or at this
    /// time.
    Timeout(Option<Instant>),
}

/// The upstream port of a switch, its mirrored downstream ports, and their links. The node connects
/// and reconnects the links. As a [`Function`] it is below a root complex or below the downstream
/// port of a device node.
///
/// TLPs pass through [`Function`]. [`handle_link`](Self::handle_link) takes
/// events of paths, [`poll_links`](Self::poll_links) yields actions for them.
///
/// After any input or output, call [`Function::poll`] until it yields `Wait` and
/// [`poll_links`](Self::poll_links) until it yields `Timeout`. Repeat until neither yields anything
/// else: a TLP that `poll` removes returns credits, which `poll_links` sends.
#[derive(Debug)]
pub struct SwitchNode {
    upstream: Upstream,
    links: Vec<Link>,
    egress: Egress,
    outputs: VecDeque<Output>,
}

impl SwitchNode {
    /// A switch after power-on, with one path for each link. All links together send at most
    /// `limit`, which they share evenly in bytes.
    ///
    /// # Panics
    /// As [`Upstream::new`].
    pub fn new(settings: Settings, limit: Option<Rate>) -> Self {
        let lanes = vec![1; settings.ports.into()];
        Self::with_lanes(settings, limit, &lanes)
    }

    /// As [`new`](Self::new), with this number of paths for each link, one or two.
    pub fn with_lanes(settings: Settings, limit: Option<Rate>, lanes: &[usize]) -> Self {
        let upstream = Upstream::new(settings);
        let links: Vec<_> = lanes.iter().map(|lanes| Link::new(*lanes)).collect();
        let egress = Egress::new(links.len(), FRAME, limit);
        Self { upstream, links, egress, outputs: VecDeque::new() }
    }

    /// The switch behind the links: counters, tunnels, buses.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Whether a link is up.
    pub fn is_up(&self, link: usize) -> bool {
        self.links[link].up
    }

    /// Whether the rate limit forbids sending now.
    pub fn is_rate_limited(&self, now: Instant) -> bool {
        self.egress.is_rate_limited(now)
    }

    /// Changes the limit of all links together.
    pub fn set_rate_limit(&mut self, rate: Option<Rate>) {
        self.egress.set_limit(rate);
    }

    /// Takes an event of the only path of `link`. Ignores events of a closed path.
    pub fn handle_link(&mut self, now: Instant, link: usize, input: path::Input) {
        self.handle_lane(now, (link, 0), input);
    }

    /// Takes an event of a path: a link, and the number of its path. Ignores events of a closed
    /// path.
    pub fn handle_lane(&mut self, now: Instant, (link, lane): (usize, usize), input: path::Input) {
        self.egress.begin();
        let Link { up, interrupted, .. } = self.links[link];
        let upstream = &mut self.upstream;
        let mut pass = |input| upstream.tunnel_mut(link).handle_path(now, lane, input);
        let own = &mut self.links[link].lanes[lane];
        match (&mut own.path, input) {
            (path @ Path::Connecting(_), path::Input::Connected) => {
                *path = Path::Open(0);
                pass(tunnel::Input::Connected);
            }
            (Path::Connecting(_), path::Input::Failed(why)) => self.failed(now, (link, lane), why),
            (Path::Connecting(_), path::Input::Closed) => {
                self.failed(now, (link, lane), "the connection was closed".into());
            }
            (Path::Open(_), path::Input::Received(bytes)) => {
                pass(tunnel::Input::Received(bytes));
            }
            (Path::Open(_), path::Input::TraceId(trace_id)) => {
                pass(tunnel::Input::TraceId(trace_id));
            }
            (Path::Open(room), path::Input::Room(bytes)) => *room = bytes,
            (Path::Connecting(_), path::Input::Refused(why)) if interrupted => {
                upstream.tunnel_mut(link).take_down(now, Cause::Refused(why));
            }
            (Path::Open(_), path::Input::Refused(why)) if up => {
                upstream.tunnel_mut(link).take_down(now, Cause::Refused(why));
            }
            // The other path carries the link.
            (Path::Connecting(_), path::Input::Refused(why)) if up => {
                self.failed(now, (link, lane), why);
            }
            (Path::Connecting(_), path::Input::Refused(why)) => {
                let buses = upstream.buses(link);
                let cause = Cause::Refused(why);
                let event = self.links[link].lost(now, (link, lane), buses, cause);
                self.outputs.extend(event.map(Output::Event));
            }
            (path @ Path::Open(_), path::Input::Refused(why) | path::Input::Failed(why)) => {
                *path = Path::Closed;
                own.failure = Some(why);
                pass(tunnel::Input::Disconnected);
            }
            (path @ Path::Open(_), path::Input::Closed) => {
                *path = Path::Closed;
                pass(tunnel::Input::Disconnected);
            }
            _ => {}
        }
    }

    /// The next action for the links.
    pub fn poll_links(&mut self, now: Instant) -> Output {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            if let Some(link) = self.egress.turn(now) {
                let sent = self.transmit(now, link, true);
                self.egress.served(now, sent);
                continue;
            }
            // Links come up and go down also while the rate limit forbids sending.
            if self.egress.is_rate_limited(now) {
                for link in 0..self.links.len() {
                    self.transmit(now, link, false);
                }
            }
            for link in 0..self.links.len() {
                (0..self.links[link].lanes.len()).for_each(|lane| self.maintain(now, (link, lane)));
            }
            if self.outputs.is_empty() {
                self.egress.begin();
                let links = self.links.iter().map(Link::timer);
                return Output::Timeout(earliest(
                    links.chain([self.egress.rate_limited_until(now)]),
                ));
            }
        }
    }

    /// Measures a link: a [`LinkEvent::Echo`] will follow.
    pub fn echo(&mut self, link: usize, number: u64) {
        self.upstream.tunnel_mut(link).echo(number);
        self.egress.begin();
    }

    /// As [`tunnel::Tunnel::report_frames`].
    pub fn report_frames(&mut self, link: usize, on: bool) {
        self.upstream.tunnel_mut(link).report_frames(on);
    }

    /// As [`tunnel::Tunnel::poll_report`].
    pub fn poll_report(&mut self, link: usize) -> Option<tunnel::Report> {
        self.upstream.tunnel_mut(link).poll_report()
    }

    /// As [`tunnel::Tunnel::take_down`]. Another session follows.
    pub fn take_down(&mut self, now: Instant, link: usize, cause: Cause) {
        self.upstream.tunnel_mut(link).take_down(now, cause);
        self.egress.begin();
    }

    /// As [`tunnel::Tunnel::give_up`].
    pub fn give_up(&mut self, now: Instant, link: usize) {
        self.upstream.tunnel_mut(link).give_up(now);
        self.egress.begin();
    }

    /// As [`Upstream::hold`].
    pub fn hold(&mut self, link: usize, held: bool) {
        self.upstream.hold(link, held);
    }

    /// Sends Goodbye on every path that has room, and closes all paths. Poll until no action is left.
    /// The node opens no further path.
    pub fn close(&mut self, now: Instant) {
        self.upstream.goodbye();
        for link in 0..self.links.len() {
            self.flush(now, link);
            for lane in 0..self.links[link].lanes.len() {
                let path = std::mem::replace(&mut self.links[link].lanes[lane].path, Path::Ended);
                if !matches!(path, Path::Waiting(_) | Path::Ended) {
                    self.close_lane(now, (link, lane), None);
                }
            }
        }
    }

    fn close_lane(&mut self, now: Instant, (link, lane): (usize, usize), cause: Option<Cause>) {
        self.outputs.push_back(Output::Close { link, lane, cause });
        self.upstream.tunnel_mut(link).handle_path(now, lane, tunnel::Input::Disconnected);
    }

    /// Starts an attempt that is due, and cancels one that timed out.
    fn maintain(&mut self, now: Instant, (link, lane): (usize, usize)) {
        self.links[link].over = self.upstream.tunnel(link).is_over();
        let may_connect = self.links[link].may_connect(lane);
        let Lane { path, failed, .. } = &mut self.links[link].lanes[lane];
        match *path {
            Path::Waiting(at) if now >= at && may_connect => {
                *path = Path::Connecting(now);
                self.outputs.push_back(Output::Connect { link, lane, attempt: *failed });
            }
            Path::Connecting(since) if now >= since + CONNECT_TIMEOUT => {
                self.outputs.push_back(Output::Close { link, lane, cause: None });
                self.failed(now, (link, lane), "the connection attempt timed out".into());
            }
            _ => {}
        }
    }

    fn failed(&mut self, now: Instant, (link, lane): (usize, usize), why: String) {
        let attempt = self.links[link].fail(now, lane);
        let event = LinkEvent::Failed { link, attempt, why, permanent: false };
        self.outputs.push_back(Output::Event(event));
    }

    /// Tells a tunnel the room of its paths; returns whether it is to be polled.
    fn offer(&mut self, now: Instant, link: usize, allowed: bool) -> bool {
        let mut polled = self.links[link].interrupted;
        for (lane, Lane { path, .. }) in self.links[link].lanes.iter().enumerate() {
            let bytes = match *path {
                Path::Open(room) if allowed => room,
                Path::Open(_) | Path::Closed => 0,
                _ => continue,
            };
            polled = true;
            let input = tunnel::Input::CanTransmit { bytes };
            self.upstream.tunnel_mut(link).handle_path(now, lane, input);
        }
        polled
    }

    /// If `allowed`, polls the tunnel of a link until it has sent one frame; returns the frame's
    /// bytes.
    fn transmit(&mut self, now: Instant, link: usize, allowed: bool) -> Option<usize> {
        if !self.offer(now, link, allowed) {
            return None;
        }
        loop {
            let event = match self.upstream.poll_link(now, link) {
                LinkOutput::Transmit(lane, bytes) => {
                    let length = bytes.len();
                    self.sent(link, lane, bytes);
                    return Some(length);
                }
                LinkOutput::Up(hello) => {
                    let several = self.upstream.tunnel(link).paths().is_some();
                    let up = &mut self.links[link];
                    (up.up, up.refusal, up.several) = (true, None, several);
                    Some(LinkEvent::Up(link, hello))
                }
                LinkOutput::EchoReply(number) => Some(LinkEvent::Echo(link, number)),
                LinkOutput::PathLost(lane, cause) => self.path_lost(now, (link, lane), cause),
                LinkOutput::Resumed => {
                    self.links[link].interrupted = false;
                    Some(LinkEvent::Resumed(link))
                }
                LinkOutput::Joined(lane) => {
                    self.links[link].lanes[lane].lost = None;
                    Some(LinkEvent::PathUp(link, lane))
                }
                LinkOutput::FailedOver(lane) => Some(LinkEvent::FailedOver(link, lane)),
                LinkOutput::Down(cause) => {
                    self.link_down(now, link, cause);
                    return None;
                }
                LinkOutput::Timeout(at) => {
                    self.links[link].timer = at;
                    return None;
                }
                LinkOutput::Reset | LinkOutput::Move(_) | LinkOutput::Moved(_) => None,
            };
            self.outputs.extend(event.map(Output::Event));
        }
    }

    fn sent(&mut self, link: usize, lane: usize, bytes: Bytes) {
        if let Path::Open(room) = &mut self.links[link].lanes[lane].path {
            *room -= bytes.len();
        }
        self.outputs.push_back(Output::Transmit { link, lane, bytes });
    }

    /// Closes a path whose session goes on.
    fn path_lost(
        &mut self,
        now: Instant,
        (link, lane): (usize, usize),
        cause: Cause,
    ) -> Option<LinkEvent> {
        let failure = self.links[link].lanes[lane].failure.take();
        let cause = failure.map_or(cause, Cause::Refused);
        self.close_lane(now, (link, lane), Some(cause.clone()));
        let interrupted = self.upstream.tunnel(link).is_interrupted();
        self.links[link].path_lost(now, (link, lane), interrupted, cause)
    }

    /// Closes the paths of a link that went down; another attempt follows.
    fn link_down(&mut self, now: Instant, link: usize, cause: Cause) {
        let lanes = &mut self.links[link].lanes;
        let failure = lanes.iter_mut().find_map(|lane| lane.failure.take());
        let cause = failure.map_or(cause, Cause::Refused);
        // Before it is up, the link has one path.
        let present = |lane: &Lane| !matches!(lane.path, Path::Waiting(_));
        let open: Vec<usize> = (0..lanes.len()).filter(|lane| present(&lanes[*lane])).collect();
        self.flush(now, link);
        let lane = open.first().copied().unwrap_or(0);
        for lane in open.into_iter().chain([lane]).collect::<BTreeSet<_>>() {
            self.close_lane(now, (link, lane), Some(cause.clone()));
        }
        let buses = self.upstream.buses(link);
        let event = self.links[link].lost(now, (link, lane), buses, cause);
        self.outputs.extend(event.map(Output::Event));
    }

    /// Sends what is still queued, such as a Reject or Goodbye.
    fn flush(&mut self, now: Instant, link: usize) {
        self.offer(now, link, true);
        loop {
            match self.upstream.poll_link(now, link) {
                LinkOutput::Transmit(lane, bytes) => self.sent(link, lane, bytes),
                LinkOutput::Timeout(_) => return,
                _ => {}
            }
        }
    }
}

impl Function for SwitchNode {
    fn handle(&mut self, now: Instant, input: pcie::Input) {
        self.upstream.handle(now, input);
        self.egress.begin();
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> pcie::Output {
        let output = self.upstream.poll(now, ready);
        self.egress.begin();
        output
    }

    fn ready(&self) -> Ready {
        self.upstream.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        self.upstream.ports()
    }
}
