//! An endpoint without a root complex: the tests make and inspect its TLPs.

use super::*;
use wire::Tag;
use wire::tlp::{Completion, ConfigKind, ConfigRequest, Status};

const ID: Bdf = Bdf::new(3, 0, 0);
const HOST: Bdf = Bdf::new(0, 0, 0);
const BAR: u64 = 0xe000_0000;

fn settings() -> EndpointConfig {
    crate::testing::endpoint(256, 256, 4)
}

fn config_request(register: u16) -> ConfigRequest {
    ConfigRequest::whole(ConfigKind::Type0, HOST, ID, register)
}

fn config_write(register: u16, value: u32) -> Input {
    let data = Bytes::copy_from_slice(&value.to_le_bytes());
    Input::Tlp(Tlp::new(Packet::ConfigWrite(config_request(register)), data))
}

fn config_read(endpoint: &mut Endpoint, register: u16) -> u32 {
    let read = Tlp::new(Packet::ConfigRead(config_request(register)), Bytes::new());
    endpoint.handle(Instant::ZERO, Input::Tlp(read));
    let answer = drain(endpoint).pop().expect("an answer");
    u32::from_le_bytes(answer.data[..].try_into().unwrap())
}

/// The host reads `length` bytes from `address`.
fn read(endpoint: &mut Endpoint, address: u64, length: usize) {
    let read = Tlp::read_bytes(HOST, Tag::truncate(5), address, length);
    endpoint.handle(Instant::ZERO, Input::Tlp(read.unwrap()));
}

/// The host writes a double word.
fn write(endpoint: &mut Endpoint, address: u64, value: u32) {
    let data = Bytes::copy_from_slice(&value.to_le_bytes());
    let write = Tlp::write_bytes(HOST, address, &data);
    endpoint.handle(Instant::ZERO, Input::Tlp(write.unwrap()));
}

fn drain(endpoint: &mut Endpoint) -> Vec<Tlp> {
    let mut out = Vec::new();
    while let Output::Tlp(tlp) = endpoint.poll(Instant::ZERO, Ready::ALL) {
        out.push(tlp);
    }
    out
}

fn enabled() -> Endpoint {
    let mut endpoint = Endpoint::new(settings());
    for (at, value) in [(0x10, BAR as u32), (0x14, 0), (0x04, 0x406)] {
        endpoint.handle(Instant::ZERO, config_write(at, value));
    }
    // MPS 256, MRRS 256, extended tags.
    let control = endpoint.pcie.offset() + 8;
    endpoint.handle(Instant::ZERO, config_write(control, 1 << 12 | 1 << 8 | 1 << 5));
    assert_eq!(drain(&mut endpoint).len(), 4);
    endpoint
}

fn read_request(tlp: &Tlp) -> MemoryRequest {
    match tlp.packet {
        Packet::MemoryRead(request) => request,
        _ => panic!("not a read: {tlp:?}"),
    }
}

fn complete(
    endpoint: &mut Endpoint,
    request: MemoryRequest,
    status: Status,
    left: usize,
    data: &[u8],
) {
    let completion = MemoryRequest { requester: ID, ..request }.completion(HOST, status, left);
    let tlp = Tlp::new(Packet::Completion(completion), Bytes::copy_from_slice(data));
    endpoint.handle(Instant::ZERO, Input::Tlp(tlp));
}

#[test]
fn bars_are_sized_and_decoded() {
    let mut endpoint = Endpoint::new(settings());
    endpoint.handle(Instant::ZERO, config_write(0x10, !0));
    endpoint.handle(Instant::ZERO, config_write(0x14, !0));
    assert_eq!(endpoint.config.read(0x10), 0xffff_c004);
    assert_eq!(endpoint.config.read(0x14), 0xffff_ffff);
    let mut endpoint = enabled();
    read(&mut endpoint, BAR + 0x13, 6);
    let Some(Event::Read { bar: 0, offset: 0x13, length: 6, token }) = endpoint.poll_event() else {
        panic!("no read event");
    };
    endpoint.complete_read(token, &[1, 2, 3, 4, 5, 6]);
    let out = drain(&mut endpoint);
    assert_eq!(out.len(), 1);
    assert_eq!(&out[0].data[..], [0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0]);
    read(&mut endpoint, BAR + 0x4000, 4);
    let out = drain(&mut endpoint);
    assert!(matches!(
        out[0].packet,
        Packet::Completion(Completion { status: Status::UnsupportedRequest, .. })
    ));
    assert_eq!(endpoint.errors().unsupported_request, 1);
}

#[test]
fn memory_space_disabled_means_unsupported_request() {
    let mut endpoint = enabled();
    endpoint.handle(Instant::ZERO, config_write(0x04, 0x4));
    drain(&mut endpoint);
    read(&mut endpoint, BAR, 4);
    assert_eq!(endpoint.poll_event(), None);
    assert_eq!(endpoint.errors().unsupported_request, 1);
}

#[test]
fn writes_come_as_runs_of_enabled_bytes() {
    let mut endpoint = enabled();
    let request = MemoryRequest {
        first_be: 0b1010,
        last_be: 0b0001,
        ..MemoryRequest::for_bytes(HOST, Tag::default(), BAR + 0x100, 8).unwrap()
    };
    let data = Bytes::from_static(&[0, 1, 2, 3, 4, 5, 6, 7]);
    endpoint.handle(Instant::ZERO, Input::Tlp(Tlp::memory_write(request, data)));
    let run = |offset, data: &'static [u8]| Event::Write {
        bar: 0,
        offset,
        data: Bytes::from_static(data),
    };
    assert_eq!(endpoint.poll_event(), Some(run(0x101, &[1])));
    assert_eq!(endpoint.poll_event(), Some(run(0x103, &[3, 4])));
    assert_eq!(endpoint.poll_event(), None);
}

#[test]
fn reads_are_split_and_put_together_out_of_order() {
    let mut endpoint = enabled();
    endpoint.dma_read(7, 0x1_0000_0f02, 600);
    let requests: Vec<_> = drain(&mut endpoint).iter().map(read_request).collect();
    let spans: Vec<_> = requests.iter().map(|r| (r.first_byte(), r.byte_count())).collect();
    assert_eq!(spans, [(0x1_0000_0f02, 254), (0x1_0000_1000, 256), (0x1_0000_1100, 90)]);
    complete(&mut endpoint, requests[2], Status::Success, 90, &[3; 92]);
    complete(&mut endpoint, requests[0], Status::Success, 254, &[1; 128]);
    complete(&mut endpoint, requests[1], Status::Success, 256, &[2; 256]);
    assert_eq!(endpoint.poll_event(), None);
    complete(&mut endpoint, requests[0], Status::Success, 128, &[1; 128]);
    let Some(Event::ReadDone { id: 7, result: Ok(data) }) = endpoint.poll_event() else {
        panic!("not done");
    };
    assert_eq!(data.len(), 600);
    assert!(data[..254].iter().all(|b| *b == 1) && data[254..510].iter().all(|b| *b == 2));
    assert!(data[510..].iter().all(|b| *b == 3));
}

#[test]
fn reads_in_flight_are_limited_and_tags_reused() {
    let mut endpoint = enabled();
    endpoint.dma_read(1, 0x1000, 4096);
    let first: Vec<_> = drain(&mut endpoint).iter().map(read_request).collect();
    assert_eq!(first.len(), 4);
    complete(&mut endpoint, first[1], Status::Success, 256, &[0; 256]);
    let next = drain(&mut endpoint);
    assert_eq!(next.len(), 1);
    assert_eq!(read_request(&next[0]).tag, first[1].tag);
}

#[test]
fn a_failed_completion_fails_the_read_once() {
    let mut endpoint = enabled();
    endpoint.dma_read(1, 0x1000, 512);
    let requests: Vec<_> = drain(&mut endpoint).iter().map(read_request).collect();
    complete(&mut endpoint, requests[0], Status::UnsupportedRequest, 256, &[]);
    assert_eq!(endpoint.poll_event(), None, "the second request is still out");
    complete(&mut endpoint, requests[1], Status::Success, 256, &[0; 256]);
    let failed = Event::ReadDone { id: 1, result: Err(DmaError::UnsupportedRequest) };
    assert_eq!(endpoint.poll_event(), Some(failed));
    complete(&mut endpoint, requests[1], Status::Success, 256, &[0; 256]);
    assert_eq!(endpoint.errors().unexpected_completion, 1);
}

#[test]
fn a_completion_that_contradicts_its_request_is_malformed() {
    let mut endpoint = enabled();
    endpoint.dma_read(1, 0x1000, 256);
    let request = read_request(&drain(&mut endpoint)[0]);
    complete(&mut endpoint, request, Status::Success, 128, &[0; 128]);
    assert_eq!(endpoint.errors().malformed, 1);
    let failed = Event::ReadDone { id: 1, result: Err(DmaError::CompleterAbort) };
    assert_eq!(endpoint.poll_event(), Some(failed));
}

#[test]
fn a_read_nobody_answers_times_out() {
    let mut endpoint = enabled();
    endpoint.dma_read(1, 0x1000, 64);
    let late = read_request(&drain(&mut endpoint)[0]);
    let Output::Wait(Wait { until: Some(at), receiver: false }) =
        endpoint.poll(Instant::ZERO, Ready::ALL)
    else {
        panic!("no timer");
    };
    assert_eq!(at, Instant::from_ns(50_000_000));
    let free_again = Instant::from_ns(100_000_000);
    assert_eq!(endpoint.poll(at, Ready::ALL), Output::Wait(Wait::until(Some(free_again))));
    let failed = Event::ReadDone { id: 1, result: Err(DmaError::Timeout) };
    assert_eq!(endpoint.poll_event(), Some(failed));
    assert_eq!(endpoint.errors().completion_timeout, 1);
    // The late completion does not answer a newer read.
    endpoint.dma_read(2, 0x1000, 64);
    let Output::Tlp(next) = endpoint.poll(at, Ready::ALL) else { panic!("no request") };
    assert_ne!(read_request(&next).tag, late.tag);
    complete(&mut endpoint, late, Status::Success, 64, &[0; 64]);
    assert_eq!(endpoint.poll_event(), None);
    assert_eq!(endpoint.errors().unexpected_completion, 1);
}

#[test]
fn writes_obey_mps_and_keep_their_order_with_interrupts() {
    let mut endpoint = enabled();
    let table = BAR + 0x2000;
    for (at, value) in [(0, 0xfee0_0000u32), (8, 0x21), (12, 0)] {
        write(&mut endpoint, table + at, value);
    }
    let control = endpoint.layout.msix.as_ref().unwrap().capability;
    endpoint.handle(Instant::ZERO, config_write(control, 1 << 31));
    drain(&mut endpoint);
    endpoint.dma_write(0x1001, Bytes::from(vec![5; 300]));
    endpoint.interrupt(0);
    endpoint.interrupt(1);
    let out = drain(&mut endpoint);
    let lengths: Vec<_> = out.iter().map(|tlp| tlp.data.len()).collect();
    assert_eq!(lengths, [256, 48, 4]);
    assert_eq!(&out[2].data[..], 0x21u32.to_le_bytes());
    // Vector 1 is masked: pending until it is unmasked.
    write(&mut endpoint, table + 16 + 12, 0);
    assert_eq!(drain(&mut endpoint).len(), 1);
}

#[test]
fn without_bus_master_nothing_leaves() {
    let mut endpoint = enabled();
    endpoint.handle(Instant::ZERO, config_write(0x04, 0x402));
    drain(&mut endpoint);
    endpoint.dma_write(0x1000, Bytes::from_static(&[1; 8]));
    endpoint.dma_read(3, 0x1000, 8);
    assert!(drain(&mut endpoint).is_empty());
    let failed = Event::ReadDone { id: 3, result: Err(DmaError::BusMasterDisabled) };
    assert_eq!(endpoint.poll_event(), Some(failed));
    assert_eq!(endpoint.errors().bus_master_off, 2);
}

#[test]
fn intx_is_a_pair_of_messages_and_flr_forgets_everything() {
    let mut endpoint = enabled();
    endpoint.handle(Instant::ZERO, config_write(0x04, 0x6));
    drain(&mut endpoint);
    endpoint.set_intx(true);
    endpoint.set_intx(true);
    endpoint.set_intx(false);
    let codes: Vec<_> = drain(&mut endpoint)
        .iter()
        .map(|tlp| match tlp.packet {
            Packet::Message(message) => message.code,
            _ => 0,
        })
        .collect();
    assert_eq!(codes, [message_code::ASSERT_INTA, message_code::DEASSERT_INTA]);
    endpoint.dma_read(9, 0x1000, 64);
    let control = endpoint.pcie.offset() + 8;
    endpoint.handle(Instant::ZERO, config_write(control, 1 << 15));
    assert_eq!(endpoint.poll_event(), Some(Event::Reset(Reset::FunctionLevel)));
    assert_eq!(endpoint.poll_event(), None);
    assert_eq!(endpoint.config.u16(0x04), 0);
    let out = drain(&mut endpoint);
    assert_eq!(out.len(), 1, "only the completion of the write");
    assert_eq!(endpoint.id(), ID);
}

#[test]
fn completions_of_before_a_reset_find_no_new_read() {
    let mut endpoint = enabled();
    endpoint.dma_read(1, 0x1000, 512);
    let old: Vec<_> = drain(&mut endpoint).iter().map(read_request).collect();
    let control = endpoint.pcie.offset() + 8;
    endpoint.handle(Instant::ZERO, config_write(control, 1 << 15));
    assert_eq!(endpoint.poll_event(), Some(Event::Reset(Reset::FunctionLevel)));
    assert_eq!(endpoint.config.u16(control) >> 5 & 7, 1, "MPS as it was");
    endpoint.handle(Instant::ZERO, config_write(0x04, 0x406));
    drain(&mut endpoint);
    endpoint.dma_read(2, 0x1000, 256);
    let new = read_request(&drain(&mut endpoint)[0]);
    assert!(old.iter().all(|old| old.tag != new.tag));
    complete(&mut endpoint, old[0], Status::Success, 256, &[9; 256]);
    assert_eq!(endpoint.poll_event(), None);
    complete(&mut endpoint, new, Status::Success, 256, &[1; 256]);
    let read = Event::ReadDone { id: 2, result: Ok(Bytes::from_static(&[1; 256])) };
    assert_eq!(endpoint.poll_event(), Some(read));
    // The other old tag is free after the quarantine.
    assert!(matches!(
        endpoint.poll(Instant::ZERO, Ready::ALL),
        Output::Wait(Wait { until: Some(_), .. })
    ));
    let late = Instant::from_ns(50_000_000);
    assert_eq!(endpoint.poll(late, Ready::ALL), Output::Wait(Wait::default()));
    assert_eq!(endpoint.errors().completion_timeout, 0);
}

#[test]
fn clearing_bus_master_ends_a_read_that_is_under_way() {
    let mut endpoint = enabled();
    endpoint.dma_read(1, 0x1000, 4096);
    endpoint.dma_read(2, 0x9000, 64);
    let sent: Vec<_> = drain(&mut endpoint).iter().map(read_request).collect();
    assert_eq!(sent.len(), 4);
    endpoint.handle(Instant::ZERO, config_write(0x04, 0x402));
    let failed = |id| Event::ReadDone { id, result: Err(DmaError::BusMasterDisabled) };
    assert_eq!(endpoint.poll_event(), Some(failed(2)));
    for request in sent {
        assert_eq!(endpoint.poll_event(), None);
        complete(&mut endpoint, request, Status::Success, 256, &[0; 256]);
    }
    assert_eq!(endpoint.poll_event(), Some(failed(1)));
    assert_eq!(drain(&mut endpoint).len(), 1, "the configuration completion alone");
}

#[test]
fn errors_show_in_advanced_error_reporting_until_they_are_cleared() {
    let mut endpoint = enabled();
    // Behind the serial number.
    let at = 0x10c;
    assert_eq!(config_read(&mut endpoint, at), 0x0002_0001);
    assert_eq!(config_read(&mut endpoint, at + 4), 0);
    let outside = MemoryRequest::for_bytes(HOST, Tag::truncate(6), BAR + 0x4000, 4).unwrap();
    endpoint.handle(Instant::ZERO, Input::Tlp(Tlp::memory_read(outside)));
    complete(&mut endpoint, outside, Status::Success, 4, &[0; 4]);
    drain(&mut endpoint);
    let (unsupported, unexpected) = (1 << 20, 1 << 16);
    assert_eq!(config_read(&mut endpoint, at + 4), unsupported | unexpected);
    endpoint.handle(Instant::ZERO, config_write(at + 4, unexpected));
    assert_eq!(config_read(&mut endpoint, at + 4), unsupported);
    endpoint.handle(Instant::ZERO, Input::HotReset);
    assert_eq!(config_read(&mut endpoint, at + 4), 0);
    assert_eq!(endpoint.errors().total(), 2, "counters go on counting");
}

#[test]
fn software_has_every_packet_guarded() {
    let mut endpoint = enabled();
    let control = 0x10c + 0x18;
    assert_eq!(config_read(&mut endpoint, control), 1 << 5 | 1 << 7, "capable, and off");
    endpoint.handle(Instant::ZERO, config_write(control, 1 << 6 | 1 << 8));
    endpoint.dma_write(0x1000, Bytes::from_static(&[1; 8]));
    endpoint.dma_read(1, 0x2000, 8);
    let out = drain(&mut endpoint);
    assert_eq!(out.len(), 3, "an answer, a write, a read");
    assert!(out.iter().all(|tlp| tlp.digest), "{out:?}");
    endpoint.handle(Instant::ZERO, Input::HotReset);
    assert_ne!(config_read(&mut endpoint, 0), 0);
    assert!(!endpoint.reporting.generates_ecrc(&endpoint.config));
}

#[test]
fn contents_owner_survives_every_reset() {
    let vendor = contents::VENDOR;
    let settings = EndpointConfig { vendor, incarnation: Some(7), ..settings() };
    let mut endpoint = Endpoint::new(settings);
    let contents = 0x138;
    let owner = contents + ContentsCapability::OWNER;
    let device_control = endpoint.pcie.offset() + 8;
    endpoint.handle(Instant::ZERO, config_write(owner, 0x89ab_cdef));
    endpoint.handle(Instant::ZERO, config_write(0x04, 0x406));
    for reset in [config_write(device_control, 1 << 15), Input::HotReset] {
        endpoint.handle(Instant::ZERO, reset);
        drain(&mut endpoint);
        assert!(!endpoint.is_bus_master());
        let words = [8, 12, 16].map(|at| endpoint.config.read(contents + at));
        assert_eq!(words, [7, 0, 0x89ab_cdef]);
    }
}
