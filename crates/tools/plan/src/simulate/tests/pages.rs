//! Reports of simulations.

use super::{gated, mixed, observed, tcp};
use crate::Plan;
use crate::simulate::{OutputFiles, PageLabels};
use report::target::Target;
use sim::Config;
use sim::workload::Workload;
use sim::world::Report;
use std::path::{Path, PathBuf};
use std::process::Command;
use wire::Duration;

/// Title, plan and names of a simulation, without streams and remarks.
pub fn labels<'a>(
    title: &'a str,
    plan: &'a str,
    named: &'a dyn Fn(&str) -> String,
) -> PageLabels<'a> {
    PageLabels {
        world: crate::run::document::World::Sim,
        title,
        plan,
        named,
        recorded: &[],
        streams: &[],
        identified: &[],
        overloads: &[],
        remarks: &[],
        phases: None,
    }
}

fn written(config: &Config, path: &Path) -> (Report, String) {
    let plan = "# as tests have it\nseed = 1 # <one>\n";
    let words = labels("test.toml", plan, &str::to_owned);
    written_as(config, path, &words)
}

pub fn written_as(config: &Config, path: &Path, words: &PageLabels<'_>) -> (Report, String) {
    let files =
        OutputFiles { report: Some(Target::File(path.to_owned())), ..OutputFiles::default() };
    let (report, limits, outputs) = observed(config, &files, words.named);
    let report = report.unwrap();
    outputs.report(config, &report, &limits, &[], words).unwrap();
    (report, std::fs::read_to_string(path).unwrap())
}

fn page(config: &Config) -> (Report, String) {
    let folder = tempfile::tempdir().unwrap();
    written(config, &folder.path().join("report.html"))
}

fn gates() -> Config {
    gated(mixed(4), Duration::from_us(300), Duration::from_us(500))
}

#[test]
fn simulation_page_has_all_sections() {
    let (report, html) = page(&gates());
    let digest = format!("{:016x}", report.digest);
    for words in [
        "Topology",
        "station 0",
        "bridge 0",
        "970PRO-0",
        "1 Gb/s",
        "Latency of read",
        "Throughput",
        "p99.9",
        "gate wait",
        "station 0 to bridge 0 port 0",
        "cycle 500 us",
        "The median read",
        "The longest observed",
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
    for config in [Config::nvme_tsn_direct(mixed(2)), Config::nvme_tsn_direct(reads), two] {
        let (_, html) = page(&config);
        assert!(html.contains("</html>") && !html.contains("NaN"));
        assert!(!html.contains("<h2>Gates</h2>"));
    }
}

/// A port whose gate is almost always closed, after more idle ports than the page shows.
#[test]
fn the_port_that_starves_is_the_first() {
    let text = "[hosts.ecu]\n[nodes.store]\n[nodes.idle]\ncount = 9\n[nodes.sink]\n\
                [drives.d]\nnode = \"store\"\n[link]\npriority = 3\nvlan = 1\n\
                [bridges.br1]\nschedule = \"s\"\n\
                [schedules.s]\nentries = [\"S 01 50us\", \"S fe 450us\"]\n\
                [traffic.t]\nfrom = \"store\"\nto = \"sink\"\ninterval = \"15us\"\n\
                [workload]\nrw = \"randread\"\nbs = \"4KiB\"\nsize = \"1MiB\"\nruntime = \"10ms\"\ntime_based = \"on\"\n";
    let planned = Plan::parse("p.toml", text).unwrap().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let named = |words: &str| planned.link_name(words);
    let words = labels("p", "", &named);
    let (report, html) = written_as(&planned.config, &folder.path().join("r.html"), &words);
    let section = html.split("<h2>Gates</h2>").nth(1).unwrap().split("<h2>").next().unwrap();
    let captions: Vec<&str> =
        section.split("<figcaption>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    assert_eq!(captions[0], "br1 port 11", "the sink's: {captions:?}");
    assert_eq!(captions.len(), 3, "idle ports are left out: {captions:?}");
    let idle: Vec<String> = (2..11).map(|port| format!("br1 port {port}")).collect();
    let note = format!("Not shown, for no frame came there: {}.", idle.join(", "));
    assert!(section.contains(&note), "{section}");
    let starved = report.queues.iter().max_by_key(|queue| queue.frame_ps).unwrap();
    assert!(starved.left > 100 && starved.mean_wait() > Duration::from_us(1_000), "{starved:?}");
    let waiting = format!("{} still waiting at the end", starved.left);
    assert!(section.contains(&waiting), "no {waiting}");
}

/// Opens a page in a browser and returns its output; `None` without a browser.
fn browser(page: &Path, options: &[String]) -> Option<String> {
    let profile = tempfile::tempdir().unwrap();
    let browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg("--allow-file-access-from-files")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(options)
        .arg(format!("file://{}", page.display()))
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&browser.stdout).into_owned())
}

fn picture(page: &Path, out: &Path, options: &[String]) -> Option<Vec<u8>> {
    let _ = std::fs::remove_file(out);
    browser(page, options)?;
    Some(std::fs::read(out).unwrap_or_else(|_| panic!("no {}", out.display())))
}

/// Puts the page into a frame as narrow as a phone, because windows of browsers are at least 500
/// pixels wide. The title becomes the width of the content.
fn on_a_phone(page: &Path, height: u32) -> PathBuf {
    let name = page.file_name().unwrap().to_str().unwrap();
    let script = "f.onload=()=>{let d=f.contentDocument;document.title='content '+\
                  Math.max(d.documentElement.scrollWidth,d.body.scrollWidth)+' wide'}";
    let frame = format!(
        "<!doctype html><title>-</title><body style=\"margin:0\"><iframe id=\"f\" \
         style=\"border:0;width:400px;height:{height}px\"></iframe>\
         <script>{script};f.src='{name}'</script>"
    );
    let path = page.with_extension("phone.html");
    std::fs::write(&path, frame).unwrap();
    path
}

/// Writes pictures of a page on a desktop, on a phone, and in print, next to the page. Returns
/// whether there is a browser.
pub fn write_screenshots(path: &Path, pages: std::ops::RangeInclusive<usize>) -> bool {
    let beside = |ending: &str| path.with_extension(ending);
    let phone = on_a_phone(path, 14_000);
    for (page, ending, size) in [(path, "1000.png", "1000,9000"), (&phone, "400.png", "500,14000")]
    {
        let out = beside(ending);
        let options = [format!("--window-size={size}"), format!("--screenshot={}", out.display())];
        let Some(bytes) = picture(page, &out, &options) else {
            eprintln!("NO SCREENSHOT: chromium is not installed; look at {}", path.display());
            return false;
        };
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000, "{} bytes", bytes.len());
    }
    let dom = browser(&phone, &["--dump-dom".into(), "--virtual-time-budget=5000".into()]);
    let dom = dom.expect("the same browser");
    assert!(dom.contains("content 400 wide"), "{} scrolls sideways: {dom}", path.display());
    let print = beside("pdf");
    let options = ["--no-pdf-header-footer".into(), format!("--print-to-pdf={}", print.display())];
    let bytes = picture(path, &print, &options).expect("the same browser");
    assert!(bytes.starts_with(b"%PDF"));
    let page = |word: &&[u8]| word.starts_with(b"/Type /Page") && word[11] != b's';
    let count = bytes.windows(12).filter(page).count();
    assert!(pages.contains(&count), "{}: {count} pages", path.display());
    true
}

/// Returns the folder for pictures.
pub fn artefacts() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../target/reports");
    std::fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

/// The pictures are for manual inspection; they need a browser.
#[test]
fn page_screenshots_are_written_on_request() {
    let path = artefacts().join("simulation.html");
    written(&gates(), &path);
    write_screenshots(&path, 4..=16);
}

/// Pages of plans with several hosts and drives: wide pictures, many links, a drive that moves.
#[test]
fn plan_page_screenshots_are_written_on_request() {
    let settings = [
        ("scale-out", &[("workload.runtime", "1ms")][..]),
        ("handover", &[]),
        ("redundant-drive", &[]),
    ];
    for (name, settings) in settings {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../plans/{name}.toml"));
        let mut plan = Plan::read(&file).unwrap();
        for (key, value) in settings {
            plan = plan.with(key, value, "test").unwrap();
        }
        let planned = plan.build().unwrap();
        let path = artefacts().join(format!("{name}.html"));
        let named = |words: &str| planned.link_name(words);
        let words =
            PageLabels { identified: &planned.identified, ..labels(name, &plan.text, &named) };
        let (_, html) = written_as(&planned.config, &path, &words);
        // The copies of the tunnel by path.
        let shown = ["copies of nvme to right", "from upper", "from lower"];
        let has = shown.map(|words| html.contains(words));
        assert_eq!(has, [name == "redundant-drive"; 3], "{name}");
        for words in ["longest observed of all", "class=\"plot own\"", "The longest observed"] {
            assert!(html.contains(words), "{name}: no {words}");
        }
        write_screenshots(&path, 4..=24);
    }
}

/// The page has plots of clocks, errors of gates, and measured latencies.
#[test]
fn simulation_page_shows_clocks() {
    let text = "runtime = \"4s\"\n[nodes.a]\nclock_drift = \"30ppm\"\n[nodes.b]\n[bridges.s]\n[clocks]\n\
                [link]\nrate = \"1G\"\nschedule = \"l\"\n[schedules.l]\nentries = [\"S 80 100us\", \
                \"S ff 400us\"]\n[traffic.t]\nfrom = \"a\"\nto = \"b\"\ninterval = \"10ms\"\n";
    let planned = Plan::parse("p.toml", text).unwrap().build().unwrap();
    let named = |words: &str| planned.link_name(words);
    let words = PageLabels { streams: &planned.streams, ..labels("clocks.toml", text, &named) };
    let folder = tempfile::tempdir().unwrap();
    let (_, page) = written_as(&planned.config, &folder.path().join("report.html"), &words);
    for part in [
        ">Clocks<",
        "Clock offsets along time",
        "window lost",
        "clocks apart by up to",
        "+30.000 ppm",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// The table and the data of the script have the same streams in the same order, and the page is
/// small and self-contained.
#[test]
fn page_of_two_thousand_streams_is_below_five_megabytes() {
    let text = crate::tests::scale::large(400, 200, 2_000);
    let text = text.replacen("runtime = \"1us\"", "runtime = \"25ms\"", 1);
    let planned = Plan::parse("p.toml", &text).unwrap().build().unwrap();
    let named = |words: &str| planned.link_name(words);
    let words = PageLabels { streams: &planned.streams, ..labels("large.toml", &text, &named) };
    let folder = tempfile::tempdir().unwrap();
    let (report, page) = written_as(&planned.config, &folder.path().join("report.html"), &words);
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    for outside in ["http:", "https:", " src=", "@import", "NaN"] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
    }
    let (_, data) = page.split_once("id=\"stream-data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let (_, table) = page.split_once("<div id=\"streams\">").unwrap();
    let (_, table) = table.split_once("<tbody>").unwrap();
    let rows = table.split_once("</tbody>").unwrap().0.split("<tr>").skip(1);
    let names = rows.map(|row| row.split(['<', '>']).nth(2).unwrap());
    let seen: Vec<&str> =
        data["rows"].as_array().unwrap().iter().map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(names.collect::<Vec<_>>(), seen);
    // The most urgent stream has the longest latency, because all have the same deadline.
    let longest = report.streams.iter().map(|stream| stream.latency().longest()).max();
    let first = &planned.streams.iter().find(|(name, _)| name == seen[0]).unwrap().1;
    assert_eq!(report.stream(*first).map(|stream| stream.latency().longest()), longest);
    assert_eq!(data["rows"][0][2][2].as_u64(), longest.map(Duration::as_ns));
}
