//! The bytes of frames, and their time on the line.

use super::*;

fn frame_of(untagged: usize) -> Frame {
    Frame::new(1, vec![0; untagged].into(), 0, Instant::ZERO)
}

#[test]
fn picoseconds_a_byte() {
    let expected = [800_000, 80_000, 8_000, 3_200, 1_600, 800, 320, 200, 160, 80, 40, 20];
    assert_eq!(Rate::ALL.map(Rate::ps_per_byte), expected);
    let bits = [1, 10, 100, 250, 500, 1_000, 2_500, 4_000, 5_000, 10_000, 20_000, 40_000]
        .map(|tens| tens * 10_000_000);
    assert_eq!(Rate::ALL.map(Rate::bits_per_second), bits);
    assert_eq!("2.5G".parse(), Ok(Rate::G2_5));
    assert_eq!(
        "3G".parse::<Rate>().unwrap_err().to_string(),
        "invalid Ethernet rate '3G': expected 10M, 100M, 1G, 2.5G, 5G, 10G, 25G, 40G, 50G, 100G, 200G or 400G"
    );
}

/// Durations of the shortest and of the longest frame, preamble to FCS, in picoseconds.
#[test]
fn serialisation_times() {
    let (short, full) = (frame_of(54), frame_of(14 + 1500));
    let times = Rate::ALL.map(|rate| (short.duration(rate).as_ps(), full.duration(rate).as_ps()));
    assert_eq!(
        times,
        [
            (57_600_000, 1_220_800_000),
            (5_760_000, 122_080_000),
            (576_000, 12_208_000),
            (230_400, 4_883_200),
            (115_200, 2_441_600),
            (57_600, 1_220_800),
            (23_040, 488_320),
            (14_400, 305_200),
            (11_520, 244_160),
            (5_760, 122_080),
            (2_880, 61_040),
            (1_440, 30_520),
        ]
    );
    let mut tagged = frame_of(14 + 1500);
    tagged.tag = Some(Tag { pcp: 6, vid: 1 });
    assert_eq!(tagged.duration(Rate::G1), Duration::from_ns(12_240));
    // A tag counts towards the minimum.
    let mut tagged = frame_of(14 + 42);
    tagged.tag = Some(Tag { pcp: 6, vid: 1 });
    assert_eq!(tagged.length(), frame::MINIMUM);
    // 1460 of 1538 bytes are useful.
    assert_eq!(port::goodput(Rate::G1, 1500, 1460), 118_660_598);
}

#[test]
fn captures_have_tag_and_padding() {
    let mut bytes = Mac::local(2).0.to_vec();
    bytes.extend(Mac::local(1).0);
    bytes.extend([0x88, 0xb5, 0xaa, 0xbb]);
    let mut frame = Frame::new(1, Bytes::from(bytes), 5, Instant::ZERO);
    let mut plain = vec![0xee];
    frame.capture(&mut plain);
    assert_eq!(plain.len(), 1 + 60);
    assert_eq!(plain[..17], *b"\xee\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5\xaa\xbb");
    assert!(plain[17..].iter().all(|&byte| byte == 0));
    frame.tag = Some(Tag { pcp: 5, vid: 0x123 });
    let mut tagged = Vec::new();
    frame.capture(&mut tagged);
    assert_eq!(tagged.len(), 60);
    assert_eq!(tagged[12..20], *b"\x81\x00\xa1\x23\x88\xb5\xaa\xbb");
    assert_eq!(frame.destination(), Mac::local(2));
    assert_eq!(frame.source().to_string(), "02:00:00:00:00:01");
}

#[test]
fn residence_sums_exactly() {
    let mut latency = FrameLatency::new(Instant::from_ps(5));
    let mut now = 5;
    let mut random = Random::new(3);
    for step in 0..100 {
        now += random.below(1_000);
        latency.book(FrameStage::ALL[step % FrameStage::COUNT], Instant::from_ps(now));
    }
    let sum: u64 = FrameStage::ALL.iter().map(|&stage| latency.spent(stage).as_ps()).sum();
    assert_eq!(sum, now - 5);
    assert_eq!(latency.total().as_ps(), sum);
}
