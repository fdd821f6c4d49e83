use super::{Folder, Job, Work, numbers, ranges};
use crate::Plan;
use crate::run::document::SweepDocument;
use crate::run::sweep::{Combinations, Grid, Sweep, SweepOptions};
use crate::run::{Seeds, Watch};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Duration;

const PLAN: &str = "machine = \"farlane\"\ntransport = \"tcp\"\n[link]\nrate = \"1G\"\n\
                    [workload]\nrw = \"randread\"\nbs = \"4KiB\"\nsize = \"64KiB\"\n";
const WATCH: Watch<'_> = Watch { is_stopped: &|| false, progress: &|_| {} };
const SEEDS: Seeds = Seeds { first: None, runs: Some(2) };

fn grid() -> Grid {
    let sweeps = ["link.rate=1G,10G", "drive.mps=128,256"];
    Grid::product(&sweeps.map(|text| text.parse::<Sweep>().unwrap()))
}

fn job(text: &str) -> Job {
    let plan = Plan::parse("plan.toml", text).unwrap();
    let job = Job::new((Path::new("plan.toml"), &plan, &[]), grid(), &SEEDS, None);
    job.unwrap_or_else(|error| panic!("{error:?}"))
}

fn work(folder: &Folder, only: &[usize], timeout: Option<Duration>) -> BTreeMap<usize, String> {
    // Each look at the clock is a second later.
    let seconds = AtomicU64::new(0);
    let clock = || Duration::from_ms(1000 * seconds.fetch_add(1, Ordering::Relaxed));
    let bounds = |_: &crate::Planned| BTreeMap::new();
    let work = Work { threads: 2, timeout, clock: &clock, bounds };
    folder.work(only, &work, &WATCH).unwrap()
}

fn json(document: &SweepDocument) -> String {
    serde_json::to_string(document).unwrap()
}

#[test]
fn points_of_several_workers_give_the_document_of_one_sweep() {
    let plan = Plan::parse("plan.toml", PLAN).unwrap();
    let mut whole = Combinations::new(&plan, &grid(), &SEEDS, None).unwrap();
    let whole = whole.run(&SweepOptions { name: "p", text: PLAN, tables: None }, &WATCH);
    let folder = tempfile::tempdir().unwrap();
    let shared = Folder::create(folder.path(), job(PLAN), "a").unwrap();
    assert_eq!(shared.missing(), [0, 1, 2, 3]);
    work(&shared, &[1, 3], None);
    assert_eq!(shared.missing(), [0, 2]);
    let part = shared.document("p", &BTreeMap::new()).unwrap();
    assert!(part.interrupted && part.combinations.len() == 2);
    let kept = fs::read(shared.point(1)).unwrap();
    let other = Folder::open(folder.path(), "b").unwrap();
    work(&other, &[0, 1, 2, 3], None);
    assert_eq!(fs::read(shared.point(1)).unwrap(), kept, "finished points do not run again");
    assert_eq!(json(&shared.document("p", &BTreeMap::new()).unwrap()), json(&whole));
    // Two seeds of four points, one host.
    assert_eq!(shared.rows().unwrap().rows(), 8);
}

#[test]
fn points_that_fail_leave_the_others_alone_and_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Folder::create(folder.path(), job(PLAN), "a").unwrap();
    work(&shared, &[2], None);
    assert!(work(&shared, &[0, 1, 2, 3], Some(Duration::from_ms(1))).is_empty());
    let document = shared.document("p", &BTreeMap::new()).unwrap();
    assert_eq!((document.combinations.len(), document.failed.len()), (1, 3));
    let why = document.ended().unwrap_err().to_string();
    assert!(why.starts_with("3 of 4 points failed, first") && why.contains("0.001 s"), "{why}");
    let again = Folder::create(folder.path(), job(PLAN), "a").unwrap();
    assert_eq!(again.missing(), [0, 1, 3]);
    fs::remove_dir_all(folder.path().join("points")).unwrap();
    let failed = work(&again, &[0], None);
    assert!(failed[&0].contains("cannot write"), "{failed:?}");
    let document = again.document("p", &failed).unwrap();
    assert_eq!((document.failed.len(), document.interrupted), (1, true));
}

#[test]
fn folders_of_other_sweeps_and_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let create = |job: Job| Folder::create(folder.path(), job, "a").map(drop);
    fs::write(folder.path().join("diary"), "").unwrap();
    assert!(create(job(PLAN)).unwrap_err().to_string().contains("other files"));
    fs::remove_file(folder.path().join("diary")).unwrap();
    create(job(PLAN)).unwrap();
    let plan = PLAN.replace("4KiB", "8KiB");
    let why = create(job(&plan)).unwrap_err().to_string();
    assert!(why.contains("another plan: line 7 was 'bs = \"4KiB\"', not"), "{why}");
    let file = folder.path().join("sweep.json");
    let text = fs::read_to_string(&file).unwrap();
    let own = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    fs::write(&file, text.replace(&own, "\"version\": \"9.9.9\"")).unwrap();
    let why = Folder::open(folder.path(), "node7").unwrap_err().to_string();
    assert!(why.contains("node7 has farlane") && why.contains("of farlane 9.9.9"), "{why}");
    assert!(create(job(PLAN)).unwrap_err().to_string().contains("a sweep of farlane 9.9.9"));
}

#[test]
fn workers_with_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames.csv");
    fs::write(&frames, "time,length\n0,100\n0.001,200\n").unwrap();
    let text = format!(
        "runtime = \"9ms\"\n[link]\n[nodes.a]\n[nodes.b]\n[bridges.s]\n[traffic.t]\nfrom = \"a\"\n\
         to = \"b\"\nreplay = {frames:?}\n"
    );
    let plan = Plan::parse("plan.toml", &text).unwrap();
    let grid = Grid::product(&["traffic.t.repeat=on,off".parse().unwrap()]);
    let job = Job::new((Path::new("plan.toml"), &plan, &[]), grid, &SEEDS, None).unwrap();
    let shared = Folder::create(&folder.path().join("shared"), job, "a").unwrap();
    fs::write(&frames, "time,length\n0,100\n0.001,300\n").unwrap();
    let work =
        Work { threads: 1, timeout: None, clock: &|| Duration::ZERO, bounds: |_| BTreeMap::new() };
    let why = shared.work(&[0], &work, &WATCH).unwrap_err().to_string();
    assert!(why.contains("a has other contents in the files of"), "{why}");
}

proptest! {
    #[test]
    fn numbers_are_read_as_they_were_written(set in prop::collection::btree_set(0..200_usize, 1..50)) {
        let all: Vec<usize> = set.into_iter().collect();
        prop_assert_eq!(numbers(&ranges(&all)).unwrap(), all);
    }
}

#[test]
fn wrong_numbers_are_refused() {
    for wrong in ["", "1-", "3-1", "a", "0-99999999999", "1,,2"] {
        assert!(numbers(wrong).is_err(), "{wrong}");
    }
}
