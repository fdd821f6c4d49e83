//! `farlane reproduce` and `farlane bench sim`.

use crate::support::program::{document, is_refused, is_wrong_usage, page, scratch, text};

#[test]
fn the_document_has_every_published_figure() {
    let html = &text(&scratch("reproduce-nvme-tsn.html").join("page.html"));
    let arguments = ["reproduce", "nvme-tsn", "--only", "table,speeds", "--json", "--html", html];
    let document = document(&arguments);
    let rows = document["rows"].as_array().unwrap();
    let expected = [
        ("config_read_direct", "ns", 280.0),
        ("config_read_tcp", "ns", 6020.0),
        ("config_read_tsn", "ns", 7091.0),
        ("t_tunnel_tcp", "ns", 2870.0),
        ("t_tunnel_tsn", "ns", 3405.0),
        ("read_4k_direct", "us", 99.92),
        ("read_4k_tcp", "us", 149.41),
        ("read_4k_tsn", "us", 186.90),
        ("write_4k_direct", "us", 51.71),
        ("write_4k_tcp", "us", 142.28),
        ("write_4k_tsn", "us", 149.74),
    ];
    assert_eq!(rows.len(), expected.len());
    for (row, (figure, unit, published)) in rows.iter().zip(expected) {
        assert_eq!((&row["figure"], &row["unit"]), (&figure.into(), &unit.into()));
        assert_eq!(row["published"].as_f64(), Some(published), "{figure}");
        let simulated = row["simulated"].as_f64().unwrap();
        let error = row["error_percent"].as_f64().unwrap();
        assert!((100.0 * (simulated / published - 1.0) - error).abs() < 0.006, "{row}");
        assert!(row["calibrated"].is_boolean() && row["note"].is_string(), "{row}");
    }
    assert_eq!(document["speeds"].as_array().unwrap().len(), 11);
    assert!(document["depth"].is_null(), "only what was asked for");
    let html = page(html);
    assert_eq!(html.matches("<svg class=\"plot\"").count(), 1);
}

/// Only the fast parts run here. The crate `papers` tests the rows of the table.
#[test]
fn the_policies_of_the_paper_side_by_side() {
    let html = &text(&scratch("reproduce-expether.html").join("page.html"));
    let arguments = ["reproduce", "expether", "--only", "ablation", "--json", "--html", html];
    let document = document(&arguments);
    assert!(document["source"].as_str().unwrap().contains("Hot Interconnects 2014"));
    let words: Vec<_> = document["ablation"].as_array().unwrap().iter().collect();
    let names: Vec<_> = words.iter().map(|one| one["aggregation"].as_str().unwrap()).collect();
    assert_eq!(names, ["per-tlp", "wait=1us", "hop", "adaptive"]);
    assert!(document["rows"].is_null(), "only what was asked for");
    page(html);
}

#[test]
fn cases_of_ports_have_their_figures() {
    let document = document(&["reproduce", "tsn-ports", "--only", "priority,gates", "--json"]);
    let checks = document["checks"].as_array().unwrap();
    let count = |case: &str| checks.iter().filter(|check| check["case"] == case).count();
    assert_eq!(
        ["cut_through", "time_aware", "cyclic"].map(count),
        [2, 4, 0],
        "only what was asked for"
    );
    for check in checks {
        assert!(check["expected"].is_number() && check["simulated"].is_number(), "{check}");
        assert_eq!(check["holds"], true, "{check}");
    }
}

#[test]
fn unknown_publications_and_parts_are_wrong_usage() {
    let part = ["reproduce", "nvme-tsn", "--only", "x"];
    let other = ["reproduce", "expether", "--only", "mrrs"];
    for (arguments, known) in
        [(&["reproduce", "nothing"][..], "nothing"), (&part, "tsn-read"), (&other, "ablation")]
    {
        assert!(is_wrong_usage(arguments).contains(known));
    }
}

/// Ten times the simulated time needs the same memory.
#[test]
fn the_simulator_is_measured_and_its_memory_does_not_grow_with_time() {
    let document = document(&["bench", "sim", "--json", "--rounds", "1", "--quick"]);
    for key in [
        "events_per_sim_s",
        "events_per_s",
        "wall_s_per_sim_s",
        "cpu_s_per_sim_s",
        "bytes_per_sim_s",
    ] {
        assert!(document[key].as_f64().unwrap() > 0.0, "{key}");
    }
    let network = &document["network"];
    assert_eq!((&network["bridges"], &network["streams"]), (&50.into(), &200.into()));
    // 50 stations send 2000 + 1000 + 500 + 250 frames per second. A few frames are still in flight
    // at the end.
    let frames = network["frames"].as_u64().unwrap();
    assert!((180_000..195_000).contains(&frames) && network["lost"] == 0, "{network}");
    let mesh = &document["mesh"];
    assert_eq!((&mesh["bridges"], &mesh["streams"]), (&1_000.into(), &10_000.into()));
    // In the first millisecond each stream sends a frame; those that began late are in flight.
    let frames = mesh["frames"].as_u64().unwrap();
    assert!((7_000..=10_000).contains(&frames) && mesh["lost"] == 0, "{mesh}");
    let bytes = |key: &str| document[key].as_u64().unwrap();
    // The line is full, so the figures apply to a full line.
    assert!((90_000_000..125_000_000).contains(&bytes("bytes_per_sim_s")), "{document}");
    let growth = bytes("max_rss_bytes") - bytes("max_rss_tenth_bytes");
    assert!(growth < 2 << 20, "{growth} bytes more after ten times the time");
}

#[test]
fn bench_takes_its_options_or_a_subcommand() {
    is_wrong_usage(&["bench", "--quick", "sim"]);
    is_wrong_usage(&["bench", "sim", "--quick", "--time", "100"]);
}

/// `farlane sim` simulates the figure of each written plan. A setting changes what follows from it.
#[test]
fn plans_of_a_publication_have_its_figures() {
    let folder = scratch("reproduce-plans");
    let name = text(&folder);
    let all = document(&["reproduce", "nvme-tsn", "--json", "--plan", &name]);
    let rows = all["rows"].as_array().unwrap();
    let rows = rows.iter().filter(|row| !row["figure"].as_str().unwrap().starts_with("t_tunnel"));
    let mut count = 0;
    for row in rows {
        let plan = folder.join(row["figure"].as_str().unwrap()).with_extension("toml");
        let comment = std::fs::read_to_string(&plan).unwrap();
        assert!(comment.starts_with("# ") && comment.contains(", section 4."), "{comment}");
        let host = document(&["sim", &text(&plan), "--json"])["hosts"][0].clone();
        let [reads, commands] =
            ["config_read_ns", "root_port_ns"].map(|key| host[key]["mean"].as_f64());
        let simulated = match row["unit"].as_str() {
            Some("ns") => reads.unwrap(),
            _ => commands.unwrap() / 1e3,
        };
        let figure = row["simulated"].as_f64().unwrap();
        assert!((figure - simulated).abs() <= 1.0, "{row}: {simulated}");
        count += 1;
    }
    assert_eq!((count, std::fs::read_dir(&folder).unwrap().count()), (9, 9));
    let set = "drive.reads_in_flight=1";
    let changed = document(&["reproduce", "nvme-tsn", "--json", "--set", set]);
    assert_eq!((&changed["set"][0], &changed["rows"]), (&set.into(), &all["rows"]));
    for row in changed["changed"].as_array().unwrap() {
        // Only a write reads data from the host, and one read takes as long as before.
        let slower = row["change_percent"].as_f64() > Some(1.0);
        assert_eq!(slower, row["figure"].as_str().unwrap().starts_with("write_4k"), "{row}");
    }
    is_refused(&["reproduce", "nvme-tsn", "--set", "drive.x=1"], &["--set drive.x=1: unknown key"]);
}

/// The tables of streams have the figures of the plans that were written for them.
#[test]
fn plans_of_streams_have_their_figures() {
    let folder = scratch("reproduce-plans-of-streams");
    let plans = text(&folder);
    for (publication, part, row, stream, ns) in [
        ("tsn-ports", "priority", "strict_priority.highest", "stream-4-0", 140_739.0),
        ("tsn-vm", "slots", "missed_slot.on_time", "stream-0-0", 618.0),
    ] {
        let run = ["reproduce", publication, "--only", part, "--json"];
        let published = document(&[&run[..], &["--plan", &plans]].concat());
        let checks = published["checks"].as_array().unwrap();
        let (case, figure) = row.split_once('.').unwrap();
        let mut of_row = checks.iter().filter(|one| one["case"] == case && one["figure"] == figure);
        let check = of_row.next().unwrap();
        assert_eq!(check["simulated"].as_f64(), Some(ns / 1e3));
        let plan = folder.join(format!("{row}.toml"));
        let simulated = document(&["sim", &text(&plan), "--json"]);
        let streams = simulated["streams"].as_array().unwrap();
        let found = streams.iter().find(|one| one["name"] == stream).unwrap();
        assert_eq!(found["listeners"][0]["latency_ns"]["max"].as_f64(), Some(ns), "{found}");
        let slower = document(&[&run[..], &["--set", "link.propagation=60ns"]].concat());
        assert_eq!(slower["checks"], published["checks"]);
        let changed = slower["changed"].as_array().unwrap();
        assert!(changed.iter().all(|row| row["changed"].as_f64() >= row["simulated"].as_f64()));
    }
    let other = ["reproduce", "expether", "--only", "ablation", "--plan", &plans];
    assert!(is_wrong_usage(&other).contains("a part with published figures: table"));
}
