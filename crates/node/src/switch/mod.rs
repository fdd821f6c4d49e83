//! A switch with the life of its links.

use crate::links::{CONNECT_TIMEOUT, FRAME, Link, LinkEvent, Path};
use crate::path;
use ::switch::congestion::Rate;
use ::switch::egress::Egress;
use ::switch::tunnel::{self, Cause};
use ::switch::upstream::{LinkOutput, Settings, Upstream, next_timer};
use bytes::{Bytes, BytesMut};
use pcie::{Function, Ready, Target};
use std::collections::VecDeque;
use wire::Instant;

/// What a switch node wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Make a path for a link, which has none. [`path::Input::Connected`] or
    /// [`path::Input::Failed`] follows, unless [`Output::Close`] comes first.
    Connect {
        /// Which link.
        link: usize,
        /// Attempts that failed before this one: of several addresses of the
        /// far side, each takes the next.
        attempt: usize,
    },
    /// Bytes for a link's path, no more than it had room for.
    Transmit {
        /// Which link.
        link: usize,
        /// What.
        bytes: Bytes,
    },
    /// Close the path of a link, or end the attempt, once what was transmitted
    /// has gone. Nothing of this path counts any more.
    Close {
        /// Which link.
        link: usize,
        /// Why the tunnel gave it up, if it had it.
        cause: Option<Cause>,
    },
    /// Something happened to a link.
    Event(LinkEvent),
    /// Nothing more now; call again after an input, of which room is one, when
    /// TLPs went in or out, or at this time.
    Timeout(Option<Instant>),
}

/// The upstream port of a switch, its mirrored downstream ports, and the links
/// of these: connected, greeted, lost, connected again. As a [`Function`] it
/// hangs below a root complex or below the downstream port of a device node.
///
/// TLPs go in and out by [`Function`]; what happens to paths by
/// [`handle_link`](Self::handle_link), what is to be done with them by
/// [`poll_links`](Self::poll_links).
///
/// After a turn of the shell in which anything went in or out, both polls are
/// called until both say `Timeout`: TLPs that are taken out give credits back.
#[derive(Debug)]
pub struct SwitchNode {
    upstream: Upstream,
    links: Vec<Link>,
    egress: Egress,
    /// Frames are made here, in the same memory again when those before are
    /// gone.
    frames: BytesMut,
    outputs: VecDeque<Output>,
}

impl SwitchNode {
    /// A switch after power-on. What goes out on all links together is limited
    /// to `limit`; they share it evenly in bytes.
    ///
    /// # Panics
    /// As [`Upstream::new`].
    pub fn new(settings: Settings, limit: Option<Rate>) -> Self {
        let upstream = Upstream::new(settings);
        let links: Vec<_> = (0..upstream.links()).map(|_| Link::new()).collect();
        let egress = Egress::new(links.len(), FRAME, limit);
        Self { upstream, links, egress, frames: BytesMut::new(), outputs: VecDeque::new() }
    }

    /// The switch behind the links: counters, tunnels, buses.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Whether a link is up.
    pub fn is_up(&self, link: usize) -> bool {
        self.links[link].up
    }

    /// Whether the rate limit lets nothing go.
    pub fn is_held(&self, now: Instant) -> bool {
        self.egress.is_held(now)
    }

    /// Takes what happened to the path of `link`. What comes of a path that
    /// was closed is ignored.
    pub fn handle_link(&mut self, now: Instant, link: usize, input: path::Input) {
        self.egress.begin();
        let upstream = &mut self.upstream;
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
            (Path::Open(_), path::Input::Mark(mark)) => {
                upstream.handle_link(now, link, tunnel::Input::Mark(mark));
            }
            (Path::Open(room), path::Input::Room(bytes)) => *room = bytes,
            (path @ Path::Open(_), path::Input::Closed) => {
                *path = Path::Closed;
                upstream.handle_link(now, link, tunnel::Input::Disconnected);
            }
            _ => {}
        }
    }

    /// The next thing to do for the links.
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
            // While the rate limit lets nothing go, links come up and go down
            // all the same.
            if self.egress.is_held(now) {
                for link in 0..self.links.len() {
                    self.transmit(now, link, false);
                }
            }
            (0..self.links.len()).for_each(|link| self.maintain_path(now, link));
            if self.outputs.is_empty() {
                self.egress.begin();
                let links = self.links.iter().map(Link::timer);
                return Output::Timeout(next_timer(links.chain([self.egress.held_until(now)])));
            }
        }
    }

    /// Measures a link: a [`LinkEvent::Echo`] will follow.
    pub fn echo(&mut self, link: usize, number: u64) {
        self.upstream.echo(link, number);
        self.egress.begin();
    }

    /// As [`Upstream::report_frames`].
    pub fn report_frames(&mut self, link: usize, on: bool) {
        self.upstream.report_frames(link, on);
    }

    /// As [`Upstream::poll_report`].
    pub fn poll_report(&mut self, link: usize) -> Option<tunnel::Report> {
        self.upstream.poll_report(link)
    }

    /// As [`Upstream::hold`].
    pub fn hold(&mut self, link: usize, held: bool) {
        self.upstream.hold(link, held);
    }

    /// Says goodbye on every link as far as its path has room, and ends: poll
    /// until nothing is left, then no path is wanted any more.
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

    /// Connects if it is time, and gives up what took too long.
    fn maintain_path(&mut self, now: Instant, link: usize) {
        let Link { path, failed, .. } = &mut self.links[link];
        match *path {
            Path::Waiting(at) if now >= at => {
                *path = Path::Connecting(now);
                self.outputs.push_back(Output::Connect { link, attempt: *failed });
            }
            Path::Connecting(since) if now >= since + CONNECT_TIMEOUT => {
                self.outputs.push_back(Output::Close { link, cause: None });
                self.failed(now, link, "timed out".into());
            }
            _ => {}
        }
    }

    fn failed(&mut self, now: Instant, link: usize, why: String) {
        let attempt = self.links[link].fail(now);
        let event = LinkEvent::Failed { link, attempt, why, permanent: false };
        self.outputs.push_back(Output::Event(event));
    }

    /// What the tunnel of a link wants, up to a frame if it may send; yields
    /// the frame's bytes.
    fn transmit(&mut self, now: Instant, link: usize, allowed: bool) -> Option<usize> {
        let room = match self.links[link].path {
            Path::Open(room) => room,
            Path::Closed => 0,
            _ => return None,
        };
        let bytes = if allowed { room } else { 0 };
        self.upstream.handle_link(now, link, tunnel::Input::CanTransmit { bytes });
        loop {
            match self.upstream.poll_link(now, link, &mut self.frames) {
                LinkOutput::Transmit(length) => {
                    let bytes = self.frames.split().freeze();
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
                LinkOutput::Down(cause) => {
                    self.link_down(now, link, cause);
                    return None;
                }
                LinkOutput::Timeout(at) => {
                    self.links[link].timer = at;
                    return None;
                }
            }
        }
    }

    /// The link went down: its path is closed, another follows.
    fn link_down(&mut self, now: Instant, link: usize, cause: Cause) {
        self.flush(now, link);
        self.outputs.push_back(Output::Close { link, cause: Some(cause.clone()) });
        self.upstream.handle_link(now, link, tunnel::Input::Disconnected);
        let buses = self.upstream.buses(link);
        let event = self.links[link].lost(now, (link, buses), cause);
        self.outputs.extend(event.map(Output::Event));
    }

    /// What is queued (a reject, a goodbye) still goes out.
    fn flush(&mut self, now: Instant, link: usize) {
        let Path::Open(bytes) = self.links[link].path else { return };
        self.upstream.handle_link(now, link, tunnel::Input::CanTransmit { bytes });
        loop {
            match self.upstream.poll_link(now, link, &mut self.frames) {
                LinkOutput::Transmit(_) => {
                    let bytes = self.frames.split().freeze();
                    self.outputs.push_back(Output::Transmit { link, bytes });
                }
                LinkOutput::Timeout(_) => return,
                LinkOutput::Up(_) | LinkOutput::Down(_) | LinkOutput::EchoReply(_) => {}
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

    fn queue(&self, target: Target) -> usize {
        Function::queue(&self.upstream, target)
    }

    fn queue_ready(&self, queue: usize) -> Ready {
        self.upstream.queue_ready(queue)
    }
}
