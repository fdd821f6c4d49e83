//! Reports of simulations.

use super::{Folder, gated, mixed, tcp};
use crate::simulate::limits::Assumptions;
use crate::simulate::{Outputs, Wanted, Words};
use sim::workload::Workload;
use sim::world::Report;
use sim::{Config, World};
use std::path::{Path, PathBuf};
use std::process::Command;
use wire::Duration;

fn written(config: &Config, path: &Path) -> (Report, String) {
    let wanted = Wanted { report: Some(path.to_owned()), ..Wanted::default() };
    let mut outputs = Outputs::begin(config, &wanted, Assumptions::default()).unwrap();
    let mut world = World::new(config).unwrap();
    world.observe(outputs.observer());
    let report = world.run().unwrap();
    let limits = outputs.close(config, world.now(), true).unwrap();
    let plan = "# as tests have it\nseed = 1 # <one>\n";
    let words = Words { title: "test.toml", plan, named: &str::to_owned, recorded: &[] };
    outputs.report(config, &report, &limits, &words).unwrap();
    (report, std::fs::read_to_string(path).unwrap())
}

fn page(config: &Config) -> (Report, String) {
    let folder = Folder::new();
    written(config, &folder.join("report.html"))
}

fn gates() -> Config {
    gated(mixed(4), Duration::from_us(300), Duration::from_us(500))
}

#[test]
fn everything_is_on_it() {
    let (report, html) = page(&gates());
    let digest = format!("{:016x}", report.digest);
    for words in [
        "Topology",
        "station 0",
        "bridge 0",
        "970PRO-0",
        "1Gb/s",
        "Latency of read",
        "Throughput",
        "p99.9",
        "gate wait",
        "station 0 to bridge 0 port 0",
        "cycle 500 µs",
        "The median read",
        "The worst",
        "class=\"closed\"",
        "Will the drive fall off the bus?",
        "I/O timeout of the driver",
        "seed = 1 # &lt;one&gt;",
        &digest,
    ] {
        assert!(html.contains(words), "no {words}");
    }
    for outside in ["http:", "https:", "<script", "src=", "@import", "NaN", "inf"] {
        assert!(!html.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
    }
    assert_eq!(html, page(&gates()).1, "the same plan, the same page");
}

#[test]
fn plans_of_all_kinds_have_a_page() {
    let reads = Workload::ConfigReads { count: 20, gap: Duration::from_us(1) };
    let mut two = tcp(2);
    two.hosts.push(two.hosts[0].clone());
    for config in [Config::brief_direct(mixed(2)), Config::brief_direct(reads), two] {
        let (_, html) = page(&config);
        assert!(html.contains("</html>") && !html.contains("NaN"));
        assert!(!html.contains("<h2>Gates</h2>"));
    }
}

/// Has a browser make something of a page; `None` without one.
fn browser(page: &Path, out: &Path, options: &[String]) -> Option<Vec<u8>> {
    let _ = std::fs::remove_file(out);
    let profile = Folder::new();
    let browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.0.display()))
        .args(options)
        .arg(format!("file://{}", page.display()))
        .output()
        .ok()?;
    let errors = String::from_utf8_lossy(&browser.stderr);
    Some(std::fs::read(out).unwrap_or_else(|_| panic!("no {}: {errors}", out.display())))
}

/// Kept for people to look at, if there is a browser: on a desktop, on a
/// phone, in print.
#[test]
fn it_can_be_looked_at() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/reports");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let path = folder.join("simulation.html");
    written(&gates(), &path);
    for (width, height) in [(1000, 9000), (400, 14000)] {
        let picture = folder.join(format!("simulation-{width}.png"));
        let options = [
            format!("--window-size={width},{height}"),
            format!("--screenshot={}", picture.display()),
        ];
        let Some(bytes) = browser(&path, &picture, &options) else {
            eprintln!("NO SCREENSHOT: chromium is not installed; look at {}", path.display());
            return;
        };
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000, "{} bytes", bytes.len());
    }
    let print = folder.join("simulation.pdf");
    let options = ["--no-pdf-header-footer".into(), format!("--print-to-pdf={}", print.display())];
    let bytes = browser(&path, &print, &options).expect("the same browser");
    assert!(bytes.starts_with(b"%PDF"));
    let page = |word: &&[u8]| word.starts_with(b"/Type /Page") && word[11] != b's';
    let pages = bytes.windows(12).filter(page).count();
    assert!((4..=16).contains(&pages), "{pages} pages");
}
