//! Reports of sent and received frames.

use super::*;
use wire::frame::FrameReport;
use wire::trace::HEAD;

pub(super) fn frames(end: &mut Tunnel) -> Vec<FrameReport> {
    let mut frames = Vec::new();
    while let Some(report) = end.poll_report() {
        match report {
            Report::Frame(_, frame) => frames.push(frame),
            Report::Dropped(trace_id) => panic!("{trace_id:?} is lost"),
        }
    }
    frames
}

fn dropped(end: &mut Tunnel) -> Vec<u64> {
    let reports = std::iter::from_fn(|| end.poll_report());
    let trace_ids = reports.filter_map(|report| match report {
        Report::Dropped(trace_id) => Some(trace_id.bits()),
        Report::Frame(..) => None,
    });
    trace_ids.collect()
}

fn marked(fill: u8, length: usize) -> Tlp {
    Tlp { trace_id: TraceId::new(fill.into()), ..write(fill, length) }
}

fn reported() -> Link {
    let mut link = Link::new(|_| {});
    link.ends.iter_mut().for_each(|end| end.report_frames(true));
    link.connect();
    link
}

fn tlps(payload: &[u8]) -> Bytes {
    framed(Kind::Tlps, 0, payload)
}

#[test]
fn reports_list_frames_with_offsets_and_marks() {
    let mut link = reported();
    link.settle(1000);
    let hello = &frames(&mut link.ends[0])[0];
    assert!(hello.sent && hello.header.kind == Kind::Hello && hello.begin == 0);
    assert!(hello.payload.starts_with(&frame::MAGIC) && hello.trace_ids.is_empty());
    let begin = hello.end();
    link.ends[0].push(marked(1, 64));
    let read = Tlp::read_bytes(Bdf::default(), Tag::default(), 0x2000, 4);
    link.ends[0].push(read.unwrap());
    link.settle(1000);
    let sent = frames(&mut link.ends[0]).remove(0);
    assert_eq!((sent.begin, sent.end()), (begin, begin + 12 + 76 + 12));
    assert_eq!(sent.trace_ids, [(TraceId::new(1), begin + 88), (TraceId::NONE, begin + 100)]);
    assert_eq!(sent.heads.len(), 2 * HEAD);
    assert_eq!((sent.heads[0], sent.heads[16]), (0x40, 0), "MWr, MRd");
    assert_eq!(sent.heads[12..16], [0; 4], "no payload behind a header of 12 bytes");
    assert_eq!(sent.heads[28..], [0; 4], "a read has no more than 12 bytes");
    assert_eq!(sent.header.sequence, 0);
}

#[test]
fn no_reports_without_request() {
    let mut link = Link::up();
    link.ends[0].push(marked(1, 64));
    link.settle(1000);
    link.ends[0].handle(link.now, Input::Disconnected);
    link.ends[0].push(marked(2, 64));
    assert!(link.ends.iter_mut().all(|end| end.poll_report().is_none()));
}

#[test]
fn marks_cross_when_the_owner_carries_them() {
    let mut link = reported();
    link.settle(1000);
    for trace_id in [7, 8] {
        link.ends[1].handle(link.now, Input::TraceId(TraceId::new(trace_id)));
    }
    (1..4).for_each(|fill| link.ends[0].push(marked(fill, 64)));
    link.settle(50);
    let got = std::iter::from_fn(|| link.ends[1].pop(Ready::ALL));
    assert_eq!(got.map(|tlp| tlp.trace_id.bits()).collect::<Vec<_>>(), [7, 8, 0]);
}

/// Every dropped TLP is reported.
#[test]
fn dropped_tlps_are_reported() {
    let mut link = reported();
    link.settle(1000);
    // TLPs that wait at the host and at the device when the link is lost.
    link.ends[1].handle(link.now, Input::TraceId(TraceId::new(7)));
    link.ends[0].push(marked(1, 64));
    link.settle(1000);
    link.ends[1].handle(link.now, Input::TraceId(TraceId::new(8)));
    link.ends[0].push(marked(2, 64));
    for end in &mut link.ends {
        dropped(end);
        end.handle(link.now, Input::Disconnected);
    }
    assert_eq!(link.ends.each_mut().map(dropped), [vec![2], vec![7, 8]]);
    link.ends[0].push(marked(3, 64));
    assert_eq!(dropped(&mut link.ends[0]), [3], "the link is down");
    // A reset drops TLPs in both directions, also TLPs that arrive before the answer to the reset.
    link.connect();
    link.settle(1000);
    link.ends[0].push(marked(4, 64));
    link.ends[0].reset();
    assert_eq!(dropped(&mut link.ends[0]), [4]);
    link.ends[0].handle(link.now, Input::TraceId(TraceId::new(9)));
    link.ends[1].push(marked(5, 64));
    link.settle(1000);
    assert_eq!(dropped(&mut link.ends[0]), [9]);
    link.ends[1].push(marked(6, 64));
    link.ends[1].reset_done();
    assert_eq!(dropped(&mut link.ends[1]), [6]);
}

/// A report of an invalid frame has the TLPs before the first invalid TLP.
#[test]
fn invalid_frame_is_reported_up_to_the_invalid_tlp() {
    let mut link = reported();
    link.settle(1000);
    frames(&mut link.ends[1]);
    let mut bytes = Vec::new();
    write(1, 64).encode(&mut bytes);
    bytes.extend_from_slice(&[0xff; 20]);
    link.ends[1].handle(link.now, Input::Received(tlps(&bytes)));
    let seen = frames(&mut link.ends[1]);
    assert_eq!((seen.len(), seen[0].trace_ids.len(), seen[0].header.length), (1, 1, 96));
    assert!(matches!(link.poll(1), Output::Down(Cause::Tlp(_))));
    link.ends[1].handle(link.now, Input::Received(tlps(&bytes)));
    assert!(frames(&mut link.ends[1]).is_empty(), "nothing after that");
    let mut link = reported();
    let stranger = Bytes::from_static(b"GET / HTTP/1.1\r\n\r\n");
    link.ends[1].handle(link.now, Input::Received(stranger));
    assert!(frames(&mut link.ends[1]).is_empty(), "these are no frames");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Both ends report the same frames for any pieces of the stream, and frames are contiguous.
    #[test]
    fn both_ends_report_the_same_frames(
        lengths in prop::collection::vec(1usize..=64, 1..60), cut in 1usize..3000,
    ) {
        let mut link = reported();
        let mut seen = [Vec::new(), Vec::new()];
        for (number, length) in lengths.iter().enumerate() {
            link.ends[number % 2].push(write(number as u8, length * 4));
            if number % 5 == 0 {
                link.ends[0].echo(number as u64);
                link.settle(cut);
            }
        }
        link.settle(cut);
        (0..2).for_each(|end| seen[end] = frames(&mut link.ends[end]));
        for from in 0..2 {
            let frames = |end: usize, sent| seen[end].iter().filter(move |frame| frame.sent == sent);
            let sent: Vec<_> = frames(from, true).cloned().collect();
            let taken: Vec<_> =
                frames(1 - from, false).map(|f| FrameReport { sent: true, ..f.clone() }).collect();
            prop_assert_eq!(&sent, &taken);
            prop_assert_eq!(sent[0].begin, 0);
            prop_assert!(sent.windows(2).all(|pair| pair[0].end() == pair[1].begin));
            let last = sent.last().unwrap().end();
            prop_assert_eq!(last, link.ends[from].counters().bytes_sent);
        }
    }

    #[test]
    fn frames_in_hostile_bytes_are_reported_in_order(
        bytes in prop::collection::vec(any::<u8>(), 0..300), whole: bool,
    ) {
        let mut link = reported();
        link.settle(1000);
        let begin = frames(&mut link.ends[1]).iter().rfind(|f| !f.sent).unwrap().end();
        let bytes = if whole { tlps(&bytes) } else { Bytes::from(bytes) };
        let length = bytes.len() as u64;
        link.ends[1].handle(link.now, Input::Received(bytes));
        let seen = frames(&mut link.ends[1]);
        prop_assert!(seen.iter().all(|f| f.begin >= begin && f.end() <= begin + length));
        prop_assert!(seen.iter().flat_map(|f| &f.trace_ids).all(|(_, end)| *end <= begin + length));
    }
}
