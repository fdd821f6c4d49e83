//! When hosts begin and pause: startdelay and thinktime, as in fio.

use crate::simulation::worlds::*;

const DELAY: Duration = Duration::from_us(300);

/// Records when each command began and ended.
#[derive(Clone, Default)]
struct Times(Rc<RefCell<Vec<(Instant, Instant)>>>);

impl Observer for Times {
    fn command(&mut self, record: &CommandRecord) {
        self.0.borrow_mut().push((record.since, record.until));
    }
}

fn times(config: &Config) -> Vec<(Instant, Instant)> {
    let (mut world, seen) = (World::new(config).expect("a valid plan"), Times::default());
    world.observe(Box::new(seen.clone()));
    world.run().expect("it ends");
    let mut seen = seen.0.borrow().clone();
    seen.sort();
    seen
}

/// Times without an outstanding command, between the first and the last one.
fn pauses(config: &Config) -> Vec<Duration> {
    let times = times(config);
    let mut busy_until = times[0].1;
    let mut pauses = Vec::new();
    for (since, until) in times {
        if since > busy_until {
            pauses.push(since - busy_until);
        }
        busy_until = busy_until.max(until);
    }
    pauses
}

/// With a directly attached drive, a start delay changes nothing except the start.
#[test]
fn every_workload_begins_later_by_its_start_delay() {
    let dd = Workload::Dd { write: false, bs: 4096, count: 5 };
    let reads = Workload::ConfigReads { count: 5, gap: Duration::from_us(10) };
    for workload in [Workload::Fio(fio(Rw::RandRw, 4096, 4)), dd, reads] {
        let mut config = Config::nvme_tsn_direct(workload);
        let prompt = run(&config);
        config.hosts[0].software.start_delay = DELAY;
        let (late, _) = twice(&config);
        let [prompt, late] = [prompt, late].map(|mut report| report.hosts.remove(0));
        assert_eq!(late.began, prompt.began + DELAY);
        assert_eq!(late.span, prompt.span);
        assert_eq!(late.latency.summary(), prompt.latency.summary());
    }
}

/// With one transfer at a time, a job of ten transfers pauses after each one except the last, or
/// after every fourth.
#[test]
fn a_job_pauses_after_so_many_transfers() {
    let work = |thinktime, thinktime_blocks| {
        let base = Fio::new(Rw::Read, 4096, 1);
        let work = Fio { size: 10 * 4096, thinktime, thinktime_blocks, ..base };
        Config::nvme_tsn_direct(Workload::Fio(work))
    };
    assert_eq!(pauses(&work(Duration::ZERO, 1)), []);
    assert_eq!(pauses(&work(DELAY, 1)), [DELAY; 9]);
    assert_eq!(pauses(&work(DELAY, 4)), [DELAY; 2]);
    assert_eq!(pauses(&work(DELAY, 10)), [], "after the last one there is nothing to wait for");
}

/// With several transfers in flight, a job waits for all of them before it pauses.
#[test]
fn transfers_in_flight_end_before_the_pause() {
    let work = |thinktime_blocks, numjobs| {
        let base = Fio { numjobs, ..fio(Rw::Read, 4096, 4) };
        let work = Fio { thinktime: DELAY, thinktime_blocks, ..base };
        Config::nvme_tsn_direct(Workload::Fio(work))
    };
    // 64 transfers in rounds of 4: the first end in a round starts the pause.
    assert_eq!(pauses(&work(1, 1)), [DELAY; 15]);
    // After 5 ends the job issues no more, and 3 others are in flight: rounds of 8.
    assert_eq!(pauses(&work(5, 1)), [DELAY; 7]);
    let (report, _) = twice(&work(5, 2));
    assert_eq!(report.hosts[0].latency.count(), 128, "nothing is left out");
}

/// After a long pause, the rate counts from the end of the pause.
#[test]
fn a_pause_and_a_rate_go_together() {
    let work = |thinktime, rate| {
        let base = Fio::new(Rw::Read, 4096, 1);
        let work = Fio { size: 4 * 4096, thinktime, rate, ..base };
        times(&Config::nvme_tsn_direct(Workload::Fio(work)))
    };
    let starts = |times: Vec<(Instant, Instant)>| {
        times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect::<Vec<_>>()
    };
    // 4096 bytes at 4.096 MB/s take 1 ms, which is longer than a read and the pause.
    assert_eq!(starts(work(DELAY, Some(4_096_000))), [Duration::from_ms(1); 3]);
    let pauses = work(Duration::from_ms(2), Some(4_096_000));
    let waits: Vec<_> = pauses.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
    assert_eq!(waits, [Duration::from_ms(2); 3]);
}
