//! A root complex with an endpoint directly below its root port.

use super::*;
use crate::endpoint::{Endpoint, Event};
use crate::enumerate::{self, Hierarchy};
use crate::function;
use crate::software::Task;
use crate::testing::{Testbed, endpoint};
use wire::Tag;
use wire::tlp::{MemoryRequest, Packet, Run, Status};

impl Testbed<Endpoint> {
    fn enumerated() -> (Self, Hierarchy) {
        let settings = Settings { completion_size: 128, ..Settings::default() };
        let mut testbed = Self::new(settings, Endpoint::new(endpoint(512, 4096, 32)), None);
        let bus = testbed.bus.clone();
        let hierarchy =
            testbed.run(enumerate::enumerate(bus, enumerate::Settings::default())).unwrap();
        (testbed, hierarchy)
    }

    /// Enables bus mastering of the endpoint. Returns its address.
    fn master(&mut self) -> Bdf {
        let (bus, bdf) = (self.bus.clone(), Bdf::new(1, 0, 0));
        self.run(async move { enumerate::enable_bus_master(&bus, bdf, true).await });
        bdf
    }

    fn receive(&mut self, tlp: Tlp) {
        self.root.handle(self.now, Input::Tlp(tlp), &Ready::ALL);
    }

    fn host_data(&mut self, token: ReadToken, data: Option<Bytes>) {
        self.root.handle(self.now, Input::HostData(token, data), &Ready::ALL);
    }

    /// The last output, which must be a read of host memory: token, requester, address and length.
    fn host_read(&mut self) -> (ReadToken, (Bdf, u64, usize)) {
        match self.outputs.pop() {
            Some(Output::Host(HostOutput::HostRead { token, requester, address, length })) => {
                (token, (requester, address, length))
            }
            output => panic!("no read of host memory: {output:?}"),
        }
    }
}

fn write(requester: Bdf, address: u64, bytes: usize) -> Tlp {
    Tlp::write_bytes(requester, address, &Bytes::from(vec![1; bytes])).unwrap()
}

#[test]
fn an_endpoint_is_found_sized_and_enabled() {
    let (testbed, hierarchy) = Testbed::enumerated();
    let endpoint = hierarchy.endpoints()[0];
    assert_eq!(endpoint.bdf, Bdf::new(1, 0, 0));
    assert_eq!(endpoint.id, (0x1234, 0x5678));
    assert_eq!(endpoint.max_payload, 512);
    let device = endpoint.device().unwrap();
    assert_eq!(device.serial, Some(42));
    assert_eq!(device.bars.len(), 1);
    assert_eq!((device.bars[0].size, device.bars[0].address), (0x4000, 0xe000_0000));
    assert_eq!(device.msix.unwrap().vectors, 4);
    assert_eq!(testbed.root.errors().total(), 0);
}

#[test]
fn vendor_id_read_of_absent_function_counts_no_error() {
    let (mut testbed, _) = Testbed::enumerated();
    for (device, offset, errors) in [(1, 0, 0), (1, 4, 1)] {
        let (bus, nobody) = (testbed.bus.clone(), Bdf::new(1, device, 0));
        let read = testbed.run(async move { bus.config_read(nobody, offset, 4).await });
        assert_eq!(read, !0);
        assert_eq!(testbed.root.errors().unsupported_request, errors, "register {offset:#x}");
    }
}

#[test]
fn memory_is_read_in_completions_that_end_at_boundaries() {
    let (mut testbed, _) = Testbed::enumerated();
    let bdf = testbed.master();
    testbed.function.dma_read(1, 0x10_0040, 300);
    testbed.settle();
    let (token, read) = testbed.host_read();
    assert_eq!(read, (bdf, 0x10_0040, 300));
    let data: Vec<u8> = (0..300u32).map(|i| i as u8).collect();
    testbed.host_data(token, Some(Bytes::from(data.clone())));
    testbed.settle();
    let Some(Event::ReadDone { id: 1, result: Ok(read) }) = testbed.function.poll_event() else {
        panic!("no data");
    };
    assert_eq!(&read[..], &data[..]);
    testbed.function.dma_read(2, 0x20_0000, 4);
    testbed.settle();
    let (token, _) = testbed.host_read();
    testbed.host_data(token, None);
    testbed.settle();
    let refused = Err(crate::endpoint::DmaError::UnsupportedRequest);
    assert_eq!(testbed.function.poll_event(), Some(Event::ReadDone { id: 2, result: refused }));
}

#[test]
fn a_device_without_bus_master_reaches_nothing_even_if_it_lies() {
    let (mut testbed, _) = Testbed::enumerated();
    testbed.receive(write(Bdf::new(1, 0, 0), 0x1000, 4));
    testbed.settle();
    assert!(testbed.outputs.is_empty());
    assert_eq!(testbed.root.errors().bus_master_off, 1);
}

#[test]
fn interrupts_are_whole_double_words_and_nothing_reads_their_window() {
    let (mut testbed, _) = Testbed::enumerated();
    let bdf = testbed.master();
    for bytes in [2, 8, 64] {
        testbed.receive(write(bdf, MSI_WINDOW.start, bytes));
    }
    testbed.receive(Tlp::read_bytes(bdf, Tag::default(), MSI_WINDOW.start, 4).unwrap());
    let Output::Downstream(function::Input::Tlp(answer)) =
        testbed.root.poll(testbed.now, &Ready::ALL)
    else {
        panic!("nobody answers the read");
    };
    let Packet::Completion(answer) = answer.packet else { panic!("no completion") };
    assert_eq!(answer.status, Status::UnsupportedRequest);
    testbed.settle();
    assert!(testbed.outputs.is_empty(), "{:?}", testbed.outputs);
    assert_eq!(testbed.root.errors().unsupported_request, 4);
}

#[test]
fn interrupts_come_behind_the_writes_before_them() {
    let (mut testbed, hierarchy) = Testbed::enumerated();
    let node = hierarchy.endpoints()[0].clone();
    let bus = testbed.bus.clone();
    testbed.run(async move {
        enumerate::enable(&bus, &node, [(2, 0x42)]).await;
    });
    testbed.function.dma_write(0x5000, Bytes::from_static(&[1, 2, 3]));
    testbed.function.interrupt(2);
    testbed.settle();
    let requester = Bdf::new(1, 0, 0);
    let data = Bytes::from_static(&[1, 2, 3]);
    assert_eq!(
        testbed.outputs,
        [
            Output::Host(HostOutput::HostWrite { requester, address: 0x5000, data }),
            Output::Host(HostOutput::Interrupt { requester, data: 0x42 })
        ]
    );
}

#[test]
fn a_dead_device_answers_all_ones_after_the_completion_timeout() {
    let (mut testbed, hierarchy) = Testbed::enumerated();
    testbed.dead = true;
    let address = hierarchy.endpoints()[0].bar(0).unwrap().address;
    let bus = testbed.bus.clone();
    let mut task = Task::new(&testbed.bus.clone(), async move { bus.read(address, 4).await });
    assert_eq!(task.poll(testbed.now), None);
    testbed.settle();
    let Output::Wait(Wait { until: Some(deadline), receiver: false }) =
        testbed.root.poll(testbed.now, &Ready::ALL)
    else {
        panic!("no timer");
    };
    assert_eq!(deadline, Instant::ZERO + Duration::from_ms(900));
    testbed.now = deadline;
    testbed.settle();
    assert_eq!(task.poll(testbed.now), Some(0xffff_ffff));
    assert_eq!(testbed.root.errors().completion_timeout, 1);
}

#[test]
fn bytes_that_are_not_enabled_are_not_written() {
    let (mut testbed, _) = Testbed::enumerated();
    let bdf = testbed.master();
    let mut request = MemoryRequest::for_bytes(bdf, Tag::default(), 0x1000, 4).unwrap();
    request.first_be = 0b1001;
    testbed.receive(Tlp::memory_write(request, Bytes::from_static(&[1, 2, 3, 4])));
    testbed.settle();
    let written =
        |address, data| Output::Host(HostOutput::HostWrite { requester: bdf, address, data });
    assert_eq!(
        testbed.outputs,
        [written(0x1000, Bytes::from_static(&[1])), written(0x1003, Bytes::from_static(&[4])),]
    );
}

/// A run that reaches [`MSI_WINDOW`] is handled packet by packet.
#[test]
fn a_run_of_writes_is_one_access_to_memory() {
    let (mut testbed, _) = Testbed::enumerated();
    let bdf = testbed.master();
    for (address, interrupts) in [(0x1000, 0), (0xfedf_ff00, 1)] {
        let bytes: Vec<u8> = (0..=255).cycle().take(516).collect();
        let first = MemoryRequest::for_bytes(bdf, Tag::default(), address, 256).unwrap();
        let mut whole = Tlp::memory_write(first, Bytes::from(bytes.clone()));
        whole.run = Run::of_writes(&first, bytes.len(), 256);
        assert!(whole.run.is_some());
        testbed.outputs.clear();
        testbed.receive(whole);
        testbed.settle();
        let count = |matching: fn(&HostOutput) -> bool| {
            testbed.outputs.iter().filter(|o| matches!(o, Output::Host(o) if matching(o))).count()
        };
        assert_eq!(count(|output| matches!(output, HostOutput::Interrupt { .. })), interrupts);
        let data = Bytes::from(bytes);
        let write = Output::Host(HostOutput::HostWrite { requester: bdf, address, data });
        assert_eq!(testbed.outputs == [write], interrupts == 0);
    }
}

#[test]
fn secondary_bus_reset_ends_everything_below() {
    let (mut testbed, _) = Testbed::enumerated();
    let bdf = testbed.master();
    testbed.function.dma_read(1, 0x1000, 64);
    testbed.settle();
    let (token, _) = testbed.host_read();
    testbed.dead = true;
    let bus = testbed.bus.clone();
    let mut task = Task::new(&testbed.bus.clone(), async move { bus.config_read(bdf, 0, 4).await });
    assert_eq!(task.poll(testbed.now), None);
    testbed.settle();
    let bus = testbed.bus.clone();
    testbed.run(async move { bus.config_write(ROOT_PORT, 0x3e, 2, 1 << 6).await });
    assert_eq!(task.poll(testbed.now), Some(!0), "what was in flight fails at once");
    assert_eq!(testbed.outputs, [Output::Downstream(function::Input::HotReset)]);
    testbed.host_data(token, Some(Bytes::from(vec![0; 64])));
    assert_eq!(testbed.root.poll(testbed.now, &Ready::ALL), Output::Wait(Wait::default()));
    testbed.receive(write(bdf, 0x1000, 4));
    assert_eq!(testbed.root.errors().bus_master_off, 1, "nobody masters the bus after a reset");
}
