//! A switch node: a switch and the paths of its links.

use crate::link_state::{CONNECT_TIMEOUT, FRAME, Link, LinkEvent, Path};
use crate::path;
use ::switch::congestion::Rate;
use ::switch::egress::Egress;
use ::switch::tunnel::{self, Cause};
use ::switch::upstream::{LinkOutput, Settings, Upstream};
use bytes::Bytes;
use pcie::{Function, Ports, Ready};
use std::collections::VecDeque;
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
        /// Number of failed attempts before this one. If the peer has several addresses, each
        /// attempt uses the next.
        attempt: usize,
    },
    /// Write bytes to a link's path, which has room for them.
    Transmit {
        /// The link.
        link: usize,
        /// The bytes.
        bytes: Bytes,
    },
    /// Close the path of a link, or cancel the attempt, after sending what was
    /// transmitted. Later input of this path is ignored.
    Close {
        /// The link.
        link: usize,
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
    /// A switch after power-on. All links together send at most `limit`, which
    /// they share evenly in bytes.
    ///
    /// # Panics
    /// As [`Upstream::new`].
    pub fn new(settings: Settings, limit: Option<Rate>) -> Self {
        let upstream = Upstream::new(settings);
        let links: Vec<_> = (0..upstream.links()).map(|_| Link::new()).collect();
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

    /// Takes an event of the path of `link`. Ignores events of a closed path.
    pub fn handle_link(&mut self, now: Instant, link: usize, input: path::Input) {
        self.egress.begin();
        let (upstream, up) = (&mut self.upstream, self.links[link].up);
        match (&mut self.links[link].path, input) {
            (path @ Path::Connecting(_), path::Input::Connected) => {
                *path = Path::Open(0);
                upstream.handle_link(now, link, tunnel::Input::Connected);
            }
            (Path::Connecting(_), path::Input::Failed(why)) => self.failed(now, link, why),
            (Path::Connecting(_), path::Input::Closed) => {
                self.failed(now, link, "the connection was closed".into());
            }
            (Path::Open(_), path::Input::Received(bytes)) => {
                upstream.handle_link(now, link, tunnel::Input::Received(bytes));
            }
            (Path::Open(_), path::Input::TraceId(trace_id)) => {
                upstream.handle_link(now, link, tunnel::Input::TraceId(trace_id));
            }
            (Path::Open(room), path::Input::Room(bytes)) => *room = bytes,
            (Path::Connecting(_) | Path::Open(_), path::Input::Refused(why)) if up => {
                upstream.tunnel_mut(link).take_down(Cause::Refused(why));
            }
            (Path::Connecting(_), path::Input::Refused(why)) => {
                let place = (link, upstream.buses(link));
                let event = self.links[link].lost(now, place, Cause::Refused(why));
                self.outputs.extend(event.map(Output::Event));
            }
            (Path::Open(_), path::Input::Refused(why) | path::Input::Failed(why)) => {
                self.links[link].failure = Some(why);
                self.handle_link(now, link, path::Input::Closed);
            }
            (path @ Path::Open(_), path::Input::Closed) => {
                *path = Path::Closed;
                upstream.handle_link(now, link, tunnel::Input::Disconnected);
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
            (0..self.links.len()).for_each(|link| self.maintain_path(now, link));
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

    /// Ends the session of a link, because of `cause`. Another one follows.
    pub fn take_down(&mut self, link: usize, cause: Cause) {
        self.upstream.tunnel_mut(link).take_down(cause);
        self.egress.begin();
    }

    /// As [`Upstream::hold`].
    pub fn hold(&mut self, link: usize, held: bool) {
        self.upstream.hold(link, held);
    }

    /// Sends Goodbye on every link whose path has room, and closes all paths. Poll until no action
    /// is left. The node opens no further path.
    pub fn close(&mut self, now: Instant) {
        self.upstream.goodbye();
        for link in 0..self.links.len() {
            self.flush(now, link);
            let path = std::mem::replace(&mut self.links[link].path, Path::Ended);
            if !matches!(path, Path::Waiting(_) | Path::Ended) {
                self.outputs.push_back(Output::Close { link, cause: None });
                self.upstream.handle_link(now, link, tunnel::Input::Disconnected);
            }
        }
    }

    /// Starts an attempt that is due, and cancels one that timed out.
    fn maintain_path(&mut self, now: Instant, link: usize) {
        let Link { path, failed, .. } = &mut self.links[link];
        match *path {
            Path::Waiting(at) if now >= at => {
                *path = Path::Connecting(now);
                self.outputs.push_back(Output::Connect { link, attempt: *failed });
            }
            Path::Connecting(since) if now >= since + CONNECT_TIMEOUT => {
                self.outputs.push_back(Output::Close { link, cause: None });
                self.failed(now, link, "the connection attempt timed out".into());
            }
            _ => {}
        }
    }

    fn failed(&mut self, now: Instant, link: usize, why: String) {
        let attempt = self.links[link].fail(now);
        let event = LinkEvent::Failed { link, attempt, why, permanent: false };
        self.outputs.push_back(Output::Event(event));
    }

    /// If `allowed`, polls the tunnel of a link until it has sent one frame; returns the frame's
    /// bytes.
    fn transmit(&mut self, now: Instant, link: usize, allowed: bool) -> Option<usize> {
        let room = match self.links[link].path {
            Path::Open(room) => room,
            Path::Closed => 0,
            _ if self.links[link].interrupted => 0,
            _ => return None,
        };
        let bytes = if allowed { room } else { 0 };
        self.upstream.handle_link(now, link, tunnel::Input::CanTransmit { bytes });
        loop {
            match self.upstream.poll_link(now, link) {
                LinkOutput::Transmit(bytes) => {
                    let length = bytes.len();
                    self.links[link].path = Path::Open(room - length);
                    self.outputs.push_back(Output::Transmit { link, bytes });
                    return Some(length);
                }
                LinkOutput::Up(hello) => {
                    (self.links[link].up, self.links[link].refusal) = (true, None);
                    self.outputs.push_back(Output::Event(LinkEvent::Up(link, hello)));
                }
                LinkOutput::EchoReply(number) => {
                    self.outputs.push_back(Output::Event(LinkEvent::Echo(link, number)));
                }
                LinkOutput::Interrupted(cause) => {
                    let cause = self.links[link].failure.take().map_or(cause, Cause::Refused);
                    self.outputs.push_back(Output::Close { link, cause: Some(cause.clone()) });
                    self.upstream.handle_link(now, link, tunnel::Input::Disconnected);
                    self.outputs
                        .extend(self.links[link].interrupt(now, link, cause).map(Output::Event));
                }
                LinkOutput::Resumed => {
                    self.links[link].interrupted = false;
                    self.outputs.push_back(Output::Event(LinkEvent::Resumed(link)));
                }
                LinkOutput::Down(cause) => {
                    self.link_down(now, link, cause);
                    return None;
                }
                LinkOutput::Timeout(at) => {
                    self.links[link].timer = at;
                    return None;
                }
                LinkOutput::Reset | LinkOutput::Move(_) | LinkOutput::Moved(_) => {}
            }
        }
    }

    /// Closes the path of a link that went down; another attempt follows.
    fn link_down(&mut self, now: Instant, link: usize, cause: Cause) {
        let cause = self.links[link].failure.take().map_or(cause, Cause::Refused);
        self.flush(now, link);
        self.outputs.push_back(Output::Close { link, cause: Some(cause.clone()) });
        self.upstream.handle_link(now, link, tunnel::Input::Disconnected);
        let buses = self.upstream.buses(link);
        let event = self.links[link].lost(now, (link, buses), cause);
        self.outputs.extend(event.map(Output::Event));
    }

    /// Sends what is still queued, such as a Reject or Goodbye.
    fn flush(&mut self, now: Instant, link: usize) {
        let Path::Open(bytes) = self.links[link].path else { return };
        self.upstream.handle_link(now, link, tunnel::Input::CanTransmit { bytes });
        loop {
            match self.upstream.poll_link(now, link) {
                LinkOutput::Transmit(bytes) => {
                    self.outputs.push_back(Output::Transmit { link, bytes });
                }
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
