//! The function at the far end of a link.

use super::disk::Disk;
use node::SwitchNode;
use pcie::dma_test::DmaTest;
use pcie::{Function, Input, Output, Ports, Ready};
use std::collections::VecDeque;
use wire::Instant;
use wire::tlp::{Class, Packet, Tlp};

/// A device, a switch, or a script.
#[derive(Debug)]
pub enum Device {
    Dma(Box<DmaTest>),
    Switch(Box<SwitchNode>),
    Script(Box<Script>),
    Disk(Box<Disk>),
}

/// A function that sends what the test supplies and records what it receives.
#[derive(Debug)]
pub struct Script {
    pub send: VecDeque<Tlp>,
    pub received: Vec<Tlp>,
    pub takes: Ready,
    pub resets: usize,
    /// Whether memory reads get no answer.
    pub silent: bool,
    /// A real function that answers configuration requests.
    pub behind: DmaTest,
}

impl Script {
    pub fn new(behind: DmaTest) -> Self {
        Self {
            send: VecDeque::new(),
            received: Vec::new(),
            takes: Ready::ALL,
            resets: 0,
            silent: false,
            behind,
        }
    }
}

impl Device {
    pub fn switch(&mut self) -> &mut SwitchNode {
        match self {
            Self::Switch(switch) => switch,
            _ => panic!("no switch"),
        }
    }

    pub fn dma(&self) -> &DmaTest {
        match self {
            Self::Dma(dma) => dma,
            Self::Script(script) => &script.behind,
            Self::Switch(_) | Self::Disk(_) => panic!("no DMA test function"),
        }
    }

    pub fn script(&mut self) -> &mut Script {
        match self {
            Self::Script(script) => script,
            _ => panic!("no script"),
        }
    }
}

impl Function for Device {
    fn handle(&mut self, now: Instant, input: Input) {
        match self {
            Self::Dma(dma) => dma.handle(now, input),
            Self::Disk(disk) => disk.handle(now, input),
            Self::Switch(switch) => switch.handle(now, input),
            Self::Script(script) => {
                match &input {
                    Input::Tlp(tlp) => {
                        script.received.push(tlp.clone());
                        let read = matches!(tlp.packet, Packet::MemoryRead(_));
                        // The script takes the completions of its own requests.
                        if script.silent && read || tlp.class() == Class::Completion {
                            return;
                        }
                    }
                    Input::HotReset => script.resets += 1,
                }
                script.behind.handle(now, input);
            }
        }
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        match self {
            Self::Dma(dma) => dma.poll(now, ready),
            Self::Disk(disk) => disk.poll(now, ready),
            Self::Switch(switch) => switch.poll(now, ready),
            Self::Script(script) => {
                if script.send.front().is_some_and(|tlp| ready.has(tlp.class())) {
                    return Output::Tlp(script.send.pop_front().expect("looked at above"));
                }
                script.behind.poll(now, ready)
            }
        }
    }

    fn ready(&self) -> Ready {
        match self {
            Self::Dma(dma) => dma.ready(),
            Self::Disk(disk) => disk.ready(),
            Self::Switch(switch) => switch.ready(),
            Self::Script(script) => script.takes,
        }
    }

    fn ports(&self) -> Option<&dyn Ports> {
        if let Self::Switch(switch) = self { switch.ports() } else { None }
    }
}
