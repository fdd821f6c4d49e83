use super::*;
use ::workload::pattern::{fill, matches};
use stats::random::Random;
use wire::Instant;

fn media(timing: Timing) -> Flash {
    Flash::new(timing, Random::new(1))
}

const PRO: Timing = Timing::SAMSUNG_970_PRO;

#[test]
fn one_read_is_firmware_sensing_and_transfer() {
    let access = media(PRO).read(Instant::ZERO, 0, 4096);
    assert_eq!(access.firmware, Duration::from_ns(21_500));
    // 4 KiB at 800 MB/s are 5.12 us.
    assert_eq!(access.media, Duration::from_ns(29_760 + 5_120));
    let second_half = PRO.page as u64 * 16;
    assert_eq!(media(PRO).read(Instant::ZERO, second_half, 4096).media.as_ns(), 41_760 + 5_120);
}

#[test]
fn reads_of_one_die_queue_and_others_do_not() {
    let mut pro = media(PRO);
    let one = pro.read(Instant::ZERO, 0, 4096).media;
    let same_die = pro.read(Instant::ZERO, 4096, 4096).media;
    let other = pro.read(Instant::ZERO, PRO.page as u64, 4096).media;
    assert_eq!(same_die.as_ns(), 2 * 29_760 + 5_120);
    assert_eq!(other, one);
    // Another die of the same channel: sensing overlaps, transfer does not.
    let same_channel = pro.read(Instant::ZERO, 8 * PRO.page as u64, 4096).media;
    assert_eq!(same_channel.as_ns(), 29_760 + 29_760 + 5_120 + 5_120);
}

#[test]
fn writes_go_to_the_buffer_until_it_is_full() {
    let mut pro = media(PRO);
    let write = pro.write(Instant::ZERO, 4096);
    assert_eq!((write.firmware + write.media).as_ns(), 4_460);
    // 1 MiB fits into the buffer; then writes wait for the dies to program pages.
    let mut now = Instant::ZERO;
    let mut slow = 0;
    for _ in 0..1024 {
        let write = pro.write(now, 32 << 10);
        slow += u32::from(write.media > Duration::from_us(20));
        now += write.firmware + write.media;
    }
    assert!(slow > 0, "the buffer never filled");
    // 16 dies program 32 KiB in 185 us each: 2.8 GB/s at most.
    let rate = (1024u128 * (32 << 10)) * 1_000_000_000_000 / u128::from(now.as_ps());
    let most = 16 * (32 << 10) * 1_000_000_000_000u128 / 185_000_000;
    assert!(rate <= most * 105 / 100 && rate * 2 >= most, "{rate} of {most} bytes/s");
}

#[test]
fn null_takes_no_time_and_presets_have_names() {
    let access = media(Timing::NULL).read(Instant::ZERO, 0, 1 << 20);
    assert_eq!(access, Access { firmware: Duration::ZERO, media: Duration::ZERO });
    assert!(Timing::PRESETS.iter().all(|name| Timing::preset(name).is_some()));
    assert_eq!(Timing::preset("floppy"), None);
}

#[test]
fn a_store_keeps_ranges_of_zeroes_without_memory() {
    let mut store = Store::new(5);
    store.write(8192, &[7; 8192]);
    // A part of a page, whole pages, of which two are stored, and another part of a page.
    store.zero(4096 + 512, (1 << 40) - 4096 - 1024);
    assert_eq!(store.pages.len(), 2, "the parts");
    assert!(matches(5, 4096, 0, &store.read(4096, 512)));
    assert_eq!(store.read(4096 + 512, 16384)[..], [0; 16384]);
    let end = (1 << 40) - 512;
    assert_eq!(store.read(end - 8192, 8192)[..], [0; 8192]);
    assert!(matches(5, end, 0, &store.read(end, 8192)));
    // Written data lie between zeroes.
    store.write(1 << 20, &[9; 512]);
    assert_eq!(store.read(1 << 20, 1024)[..], [[9; 512], [0; 512]].concat());
    // Adjacent ranges, and ranges within others.
    let mut store = Store::new(5);
    for (page, pages) in [(4, 2), (8, 1), (6, 2), (5, 1), (3, 9)] {
        store.zero(page * 4096, pages * 4096);
    }
    assert_eq!(store.read(3 * 4096, 9 * 4096)[..], [0; 9 * 4096]);
    assert!(matches(5, 2 * 4096, 0, &store.read(2 * 4096, 4096)));
    assert!(matches(5, 12 * 4096, 0, &store.read(12 * 4096, 4096)));
    store.zero(12 * 4096 + 8, 16);
    assert_eq!(store.read(12 * 4096 + 8, 16)[..], [0; 16]);
    assert!(matches(5, 12 * 4096, 0, &store.read(12 * 4096, 8)));
}

#[test]
fn a_store_holds_what_was_written_and_computes_the_rest() {
    let mut store = Store::new(5);
    let fresh = store.read(4096 * 3 - 512, 1024);
    assert!(matches(5, 4096 * 3 - 512, 0, &fresh));
    let mut data = [0; 1024];
    fill(5, 4096 * 3 - 512, 7, &mut data);
    store.write(4096 * 3 - 512, &data);
    assert_eq!(store.read(4096 * 3 - 512, 1024)[..], data);
    assert!(matches(5, 4096 * 2, 0, &store.read(4096 * 2, 512)), "beside it nothing changed");
    assert_eq!(store.pages.len(), 2);
    assert!(!matches(5, 0, 0, &data) && !matches(6, 4096 * 3 - 512, 7, &data));
    assert!(!matches(5, 4096 * 3 - 512, 6, &data));
}
