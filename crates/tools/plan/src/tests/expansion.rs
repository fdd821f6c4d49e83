//! Parameters, patterns of names, included files, rows of CSV files, and dumps.

use super::{built, fails};
use crate::{Plan, Planned};
use std::fs;
use std::path::{Path, PathBuf};

/// A ring of bridges, with one node at each and streams to the opposite node.
const RING: &str = r#"
runtime = "1ms"
[parameters]
n = 6
period = 250
half = "{n / 2}"
[nodes."n{i = 1..n}"]
[bridges."b{i = 1..n}"]
[bridges."b{i = 1..n}".ports."b{i % n + 1}"]
queue_frames = "{100 + i}"
[cables."n{i = 1..n}"]
a = "n{i}"
b = "b{i}"
[cables."ring{i = 1..n}"]
a = "b{i}"
b = "b{i % n + 1}"
[traffic."t{i = 1..n}-{k = 1..2}"]
from = "n{i}"
to = "n{(i + half - 1) % n + 1}"
interval = "{period * k}us"
priority = "{k % 8}"
[streams."s{i = 1..1}"]
from = "n{i}"
to = "n{i + 1}"
paths = ["b{i} > b{i + 1}"]
"#;

/// Returns everything that the simulation uses.
pub fn config(planned: &Planned) -> String {
    format!("{:?} {:?}", planned.config, planned.requirements)
}

fn plans() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|end| end == "toml")).collect()
}

#[test]
fn patterns_make_a_table_per_value() {
    let planned = built(RING);
    assert_eq!(planned.stations, ["n1", "n2", "n3", "n4", "n5", "n6"]);
    assert_eq!(planned.bridges, ["b1", "b2", "b3", "b4", "b5", "b6"]);
    let names: Vec<&str> = planned.streams.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..5], ["t1-1", "t1-2", "t2-1", "t2-2", "t3-1"]);
    let network = &planned.config.network;
    let to = |station: usize| network.stations[station].traffic[0].listeners[0].station;
    assert_eq!((to(0), to(4)), (3, 1), "the opposite node");
    let second = &network.stations[3].traffic[1];
    assert_eq!((second.priority, second.pattern.interval().as_ns()), (2, 500_000));
    // Ports are in the order of the cables.
    let frames =
        |bridge: usize, port: usize| network.bridges[bridge].ports[port].classes[0].queue_frames;
    assert_eq!((frames(1, 2), frames(5, 2)), (102, 106));
    assert_eq!(planned.identified, ["s1"]);
}

#[test]
fn options_change_parameters_and_generated_tables() {
    let plan = Plan::parse("p.toml", RING).unwrap();
    let set = |plan: &Plan, path: &str, value: &str| plan.with(path, value, "--set").unwrap();
    let interval = |plan: &Plan, station: usize| {
        let traffic = &plan.build().unwrap().config.network.stations[station].traffic[1];
        traffic.pattern.interval().as_ns()
    };
    let own = set(&plan, "traffic.t3-2.interval", "7us");
    assert_eq!((interval(&own, 2), interval(&own, 1)), (7_000, 500_000));
    // The order of options on other keys is of no importance.
    let more = set(&set(&own, "parameters.n", "8"), "parameters.period", "100");
    assert_eq!((interval(&more, 2), interval(&more, 7)), (7_000, 200_000));
    assert_eq!(more.build().unwrap().bridges.len(), 8);
    let error = |path: &str, value: &str| plan.with(path, value, "--set").unwrap_err().to_string();
    assert!(
        error("parameters.m", "5").starts_with(
            "--set parameters.m=5: unknown name in [parameters] 'm'; did you mean 'n'?"
        )
    );
    assert!(error("traffic.t9-1.burst", "5").contains("unknown name in [traffic] 't9-1'"));
    assert!(error("include", "x.toml").starts_with("--set include=x.toml: options cannot"));
    assert!(error("parameters.n", "0").contains("'{i = 1..n}': the range is empty: 1..0"));
}

#[test]
fn variants_change_parameters() {
    let text =
        format!("{RING}[variants.large]\nset = [\"parameters.n=9\", \"traffic.t9-1.burst=2\"]\n");
    let plan = Plan::parse("p.toml", &text).unwrap();
    assert_eq!(plan.build().unwrap().bridges.len(), 6);
    let large = plan.with("variant", "large", "--set").unwrap().build().unwrap();
    assert_eq!((large.bridges.len(), large.config.network.stations[8].traffic[0].burst), (9, 2));
}

#[test]
fn mistakes_in_patterns_have_the_place_of_the_pattern() {
    for (text, expected) in [
        ("[nodes.\"n{i = 1..m}\"]", "p.toml:1:8: '{i = 1..m}': unknown name 'm': there is none"),
        ("[nodes.\"n{i = 2..1}\"]", "p.toml:1:8: '{i = 2..1}': the range is empty: 2..1"),
        (
            "[nodes.\"n{i = 1..3\"]",
            "p.toml:1:8: 'n{i = 1..3': a brace is not closed; '{{' is a brace",
        ),
        ("[nodes.\"n{i}\"]", "p.toml:1:8: '{i}': unknown name 'i': there is none"),
        (
            "[nodes.\"n{1 = 1..3}\"]",
            "p.toml:1:8: '{1 = 1..3}': invalid name '1': expected letters, digits and '_'",
        ),
        (
            "[nodes.n2]\n[nodes.\"n{i = 1..3}\"]",
            "p.toml:2:8: 'n2' is already the name of the table at p.toml:1:8",
        ),
        (
            "[nodes.\"n{i = 1..4}-{(i - 1) / 2}\"]\n[nodes.\"n{i = 1..4}-{0}\"]",
            "p.toml:2:8: 'n1-0' is already the name of the table at p.toml:1:8",
        ),
        (
            "[parameters]\ni = 3\n[nodes.\"n{i = 1..3}\"]",
            "p.toml:3:8: '{i = 1..3}': 'i' has a value already",
        ),
        (
            "[traffic.\"t{i = 0..1}\"]\nburst = \"{1 / i}\"",
            "p.toml:2:9: '{1 / i}': division by zero",
        ),
        ("[nodes.\"n{i = 1..100001}\"]", "p.toml:1:8: patterns make more than 100000 tables"),
        (
            "[nodes.\"n{i = 1..9000000000000}\"]",
            "p.toml:1:8: patterns make more than 100000 tables",
        ),
        ("[link]\nrate = \"{r}G\"", "p.toml:2:8: '{r}': unknown name 'r': there is none"),
        ("[parameters]\nx = [1]", "p.toml:2:5: x: expected a whole number or a text"),
        (
            "[parameters]\na-b = 1",
            "p.toml:2:1: invalid name 'a-b': expected letters, digits and '_'",
        ),
        ("[parameters]\nb = \"{a}\"\na = 1", "p.toml:2:5: '{a}': unknown name 'a': there is none"),
        (
            "[traffic.\"{x}\"]\nrows = 5",
            "p.toml:2:8: rows: expected a CSV file or an array of tables",
        ),
    ] {
        fails(text, expected);
    }
    let many: String = (0..9).map(|at| format!("{{x{at} = 1..1}}")).collect();
    fails(&format!("[nodes.\"{many}\"]"), "p.toml:1:8: a name has 8 ranges at most");
    // Two patterns, two mistakes.
    fails(
        "[nodes.\"n{i = 1..m}\"]\n[link]\nrate = \"{r}G\"",
        "p.toml:1:8: '{i = 1..m}': unknown name 'm': there is none\n\
         p.toml:3:8: '{r}': unknown name 'r': there is none",
    );
}

/// A station may have a number as its name.
#[test]
fn numbers_are_texts_where_only_texts_are_allowed() {
    let text = "runtime = \"1ms\"\n[bridges.b]\n[nodes.\"{i = 1..3}\"]\n[traffic.\"{i = 1..2}\"]\n\
                from = \"{i}\"\nto = \"{i + 1}\"\ninterval = \"1ms\"\n";
    assert_eq!(built(text).config.network.stations[1].traffic[0].listeners[0].station, 2);
}

/// Returns a folder with these files, and the plan in it.
pub fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let plan = folder.path().join("plan.toml");
    (folder, plan)
}

/// Returns the error of a plan with these files, without the folder's name.
pub fn refused(files: &[(&str, &str)]) -> String {
    let (folder, plan) = folder(files);
    let plan = Plan::read(&plan);
    let error = plan.and_then(|plan| plan.build().map_err(|error| error.to_string())).unwrap_err();
    error.replace(&format!("{}/", folder.path().display()), "")
}

const NETWORK: &str = "runtime = \"1ms\"\n[bridges.b]\n[nodes.\"n{i = 1..n}\"]\n";

#[test]
fn included_files_are_part_of_the_plan() {
    let (_folder, plan) = folder(&[
        (
            "plan.toml",
            "include = [\"parts/all.toml\", \"sizes.toml\"]\n[nodes.last]\n[traffic.t]\nto = \"n3\"\n",
        ),
        (
            "parts/all.toml",
            "include = \"../network.toml\"\n[traffic.t]\nfrom = \"last\"\ninterval = \"{n}ms\"\n",
        ),
        ("network.toml", &format!("include = \"sizes.toml\"\n{NETWORK}")),
        ("sizes.toml", "[parameters]\nn = 3\n"),
    ]);
    let plan = Plan::read(&plan).unwrap();
    let planned = plan.build().unwrap();
    assert_eq!(planned.stations, ["n1", "n2", "n3", "last"]);
    let larger = plan.with("parameters.n", "4", "--set").unwrap().build().unwrap();
    assert_eq!(larger.stations.len(), 5);
    // The text in documents needs no other file, and still has the parameters.
    let alone = Plan::parse("elsewhere.toml", &plan.text).unwrap();
    assert_eq!(config(&alone.build().unwrap()), config(&planned));
    let alone = alone.with("parameters.n", "4", "--set").unwrap();
    assert_eq!(config(&alone.build().unwrap()), config(&larger));
}

#[test]
fn mistakes_of_included_files_have_their_place() {
    for (text, included, expected) in [
        (
            "include = \"a.toml\"\nseed = 2\n",
            "seed = 1\n",
            "plan.toml:2:1: 'seed' is already set at a.toml:1:1",
        ),
        (
            "include = \"a.toml\"\n[traffic.t]\nburst = 5\n",
            "[traffic.t]\nburst = 6\n",
            "plan.toml:3:1: 'burst' is already set at a.toml:2:1",
        ),
        (
            "include = [\"a.toml\"]\n[link]\n",
            "link = 3\n",
            "plan.toml:2:2: 'link' is already set at a.toml:1:1",
        ),
        (
            "include = \"a.toml\"\n",
            "[link]\nraet = \"1G\"\n",
            "a.toml:2:1: unknown key of [link] 'raet'. There are: rate, ",
        ),
        ("include = \"a.toml\"\n", "[link\n", "a.toml:1:6: unclosed table"),
        (
            "include = \"a.toml\"\n",
            "include = \"a.toml\"\n",
            "a.toml:1:11: include: a.toml includes itself",
        ),
        (
            "include = \"a.toml\"\n",
            "include = \"plan.toml\"\n",
            "a.toml:1:11: include: plan.toml includes itself",
        ),
        ("include = \"b.toml\"\n", "", "plan.toml:1:11: include: b.toml: No such file"),
    ] {
        let found = refused(&[("plan.toml", text), ("a.toml", included)]);
        assert!(found.starts_with(expected), "{found}");
    }
}

const ROWS: &str = "include = \"network.toml\"\n[parameters]\nn = 4\n[traffic.\"{name}-{k = 1..2}\"]\nrows = \"streams.csv\"\n\
                    from = \"n{source}\"\ninterval = \"{us * k}us\"\n";

#[test]
fn rows_become_tables() {
    let csv =
        "name,source,us,to,priority,deadline\r\n\"a\"\"b\",1,100,n2,5,1ms\r\n\r\nc,2,50,n4,,\r\n";
    let (_folder, file) =
        folder(&[("plan.toml", ROWS), ("network.toml", NETWORK), ("streams.csv", csv)]);
    let plan = Plan::read(&file).unwrap();
    let planned = plan.build().unwrap();
    let names: Vec<&str> = planned.streams.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a\"b-1", "a\"b-2", "c-1", "c-2"]);
    let stations = &planned.config.network.stations;
    let traffic = |station: usize, at: usize| {
        let one = &stations[station].traffic[at];
        let to = &one.listeners[0];
        (to.station, one.priority, one.pattern.interval().as_ns(), to.deadline.is_some())
    };
    assert_eq!(traffic(0, 1), (1, 5, 200_000, true));
    assert_eq!(traffic(1, 0), (3, 0, 50_000, false), "empty cells");
    let alone = Plan::parse("elsewhere.toml", &plan.text).unwrap();
    assert_eq!(config(&alone.build().unwrap()), config(&planned));
}

#[test]
fn cells_are_numbers_arrays_and_texts() {
    let (_folder, file) = folder(&[
        (
            "plan.toml",
            "include = \"network.toml\"\nparameters.n = 2\n[streams.\"{from}\"]\nrows = \"s.csv\"\n",
        ),
        ("network.toml", &NETWORK.replace("{i = 1..n}", "0{i = 1..n}")),
        (
            "s.csv",
            "from,to,history,paths,eliminate\nn01,n02,12,\"[\"\"b\"\", \"\"b\"\"]\",\"[\"\"n02\"\"]\"\n",
        ),
    ]);
    let error = Plan::read(&file).unwrap().build().unwrap_err().to_string();
    assert!(error.contains("runtime without hosts needs [traffic.NAME]"), "{error}");
    let traffic =
        "[traffic.\"{from}\"]\nrows = [{ from = \"n02\", to = \"n01\", interval = \"1ms\" }]\n";
    let text = fs::read_to_string(&file).unwrap() + traffic;
    fs::write(&file, text).unwrap();
    let planned = Plan::read(&file).unwrap().build().unwrap();
    let stream = &planned.config.network.streams[0];
    assert_eq!((stream.paths.len(), stream.eliminate.len()), (2, 1));
    assert_eq!(planned.streams[0].0, "n02");
}

#[test]
fn mistakes_in_rows_have_file_and_line() {
    for (csv, expected) in [
        (
            "name,source,us,to,colour\na,1,5,n2,red\n",
            "streams.csv:1:5: unknown key of [traffic.a-1] 'colour'",
        ),
        (
            "name,source,us,to,interval\na,1,5,n2,1ms\n",
            "streams.csv:1:5: column 'interval' has no effect: the key is set at plan.toml:7:1",
        ),
        (
            "name,source,us,to\na,1,5,n2\nb,1,5\n",
            "streams.csv:3:1: expected 4 cells, as in the first line; found 3",
        ),
        ("name,source,us,us\na,1,5,6\n", "streams.csv:1:4: two columns have the name 'us'"),
        (
            "name,source,us,to\r\na,1,5,n2\r\nb,1,5,n9\r\n",
            "streams.csv:3:4: unknown host or node 'n9'",
        ),
        ("name,source,us,to,burst\n\na,1,5,n2,\"[\"\n", "streams.csv:3:5: "),
        (
            "name,source,us,to,burst\na,1,5,n2,x\n",
            "streams.csv:2:5: burst: expected a whole number",
        ),
        (
            "name,source,us,to\na,1,5,n2\na,1,5,n3\n",
            "streams.csv:3:1: 'a-1' is already the name of the table at streams.csv:2:1",
        ),
        ("name,source,to\na,1,n2\n", "plan.toml:7:12: '{us * k}': unknown name 'us'"),
    ] {
        let files = [("plan.toml", ROWS), ("network.toml", NETWORK), ("streams.csv", csv)];
        let found = refused(&files);
        assert!(found.starts_with(expected), "{csv}: {found}");
    }
    let found = refused(&[("plan.toml", ROWS), ("network.toml", NETWORK)]);
    assert!(found.starts_with("plan.toml:5:8: rows: streams.csv: No such file"), "{found}");
}

#[test]
fn dumps_build_the_same_simulation() {
    for file in plans() {
        let plan = Plan::read(&file).unwrap();
        let dumped = Plan::parse("elsewhere.toml", &plan.dump()).unwrap();
        let name = file.display();
        assert_eq!(dumped.dump(), plan.dump(), "{name}");
        let [plan, dumped] = [plan, dumped].map(|plan| plan.build().unwrap());
        assert_eq!(config(&dumped), config(&plan), "{name}");
        assert_eq!(dumped.record, plan.record, "{name}");
    }
}

/// A dump has no parameters and no patterns, and the values of options.
#[test]
fn dumps_are_expanded() {
    let plan = Plan::parse("p.toml", RING).unwrap();
    let plan = plan.with("parameters.n", "4", "--set").unwrap();
    let plan = plan.with("traffic.t1-1.burst", "9", "--set").unwrap();
    let dump = plan.dump();
    assert!(!dump.contains("parameters") && !dump.contains("= 1.."), "{dump}");
    assert!(dump.contains("\n[traffic.t1-1]\nfrom = \"n1\"\nto = \"n3\"\ninterval = \"250us\"\npriority = 1\nburst = 9\n"), "{dump}");
    let dumped = Plan::parse("p.toml", &dump).unwrap().build().unwrap();
    assert_eq!(config(&dumped), config(&plan.build().unwrap()));
}

/// The example of docs/plan.md, also with 1000 bridges.
#[test]
fn the_page_has_a_large_plan() {
    let page = include_str!("../../../../../docs/plan.md");
    let (_, page) = page.split_once("## Large plans").unwrap();
    let block = |language: &str| {
        let (_, block) = page.split_once(&format!("```{language}\n")).unwrap();
        block.split_once("```").unwrap().0
    };
    let files = [("plan.toml", block("toml")), ("streams.csv", block("csv"))];
    let (_folder, file) = folder(&files);
    let plan = Plan::read(&file).unwrap();
    let planned = plan.build().unwrap();
    assert_eq!((planned.bridges.len(), planned.streams.len()), (200, 2_002));
    assert_eq!(planned.requirements.len(), 1);
    let large = plan.with("parameters.n", "1000", "--set").unwrap().build().unwrap();
    assert_eq!((large.bridges.len(), large.streams.len()), (1_000, 10_002));
}
