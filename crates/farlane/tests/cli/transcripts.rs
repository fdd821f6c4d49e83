//! Transcripts in documents match the output of the commands, because virtual time is equal on any
//! machine.

use crate::support::program::farlane;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Line of a transcript that stands for left-out lines.
const LEFT_OUT: &str = "...";

/// Returns the commands in the fenced blocks of a page, each with its printed output.
pub fn transcripts(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let blocks = page.split("\n```").skip(1).step_by(2);
    for block in blocks {
        let mut open = false;
        for line in block.lines().skip(1) {
            if let Some(command) = line.strip_prefix("$ ") {
                open = true;
                found.push((command.to_owned(), Vec::new()));
            } else if open {
                found.last_mut().unwrap().1.push(line.to_owned());
            }
        }
    }
    found
}

/// Returns a folder for commands: the plans are there, and the commands write their files there.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(format!("{ROOT}/plans"), folder.path().join("plans")).unwrap();
    folder
}

fn printed(place: &tempfile::TempDir, command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let output = farlane(&words).current_dir(place).output().expect("the program starts");
    // Status 3: the output is complete, but a requirement is missed.
    let complete = matches!(output.status.code(), Some(0 | 3));
    assert!(complete, "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Returns whether `shown` equals `all`, except for left-out lines.
pub fn is_shown(shown: &[String], all: &[String]) -> bool {
    match shown.iter().position(|line| line == LEFT_OUT) {
        None => shown == all,
        Some(at) => {
            let (head, tail) = (&shown[..at], &shown[at + 1..]);
            all.len() >= head.len()
                && head == &all[..head.len()]
                && (head.len()..=all.len()).any(|from| is_shown(tail, &all[from..]))
        }
    }
}

/// Sweeps that take long, each with the part that runs in the short tests.
const PARTS: [(&str, &str); 4] = [
    (
        "hosts.host.count=1,2,4,8 --sweep nodes.box.count=1,2,4,8",
        "hosts.host.count=1 --sweep nodes.box.count=1,2",
    ),
    ("workload.numjobs=1,2,4,8,16", "workload.numjobs=1,4"),
    ("hosts.host.count=1,8", "hosts.host.count=1"),
    ("workload.numjobs=2,8", "workload.numjobs=2"),
];

/// Checks that the page has each row that a part of a sweep prints. Columns may be wider on the
/// page.
#[track_caller]
fn rows_are_shown(name: &str, command: &str, shown: &[String]) {
    let words = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let shown: Vec<_> = shown.iter().map(words).collect();
    let part = printed(&place(), command);
    assert!(part.len() > 2, "a heading and the rows");
    for row in &part {
        assert!(shown.contains(&words(row)), "{name} tells something else of '{command}': {row}");
    }
}

/// Checks at most `most` simulations and analyses of a page, with `parts` in place of long sweeps.
/// Returns the folder with their files.
#[track_caller]
fn check(name: &str, most: usize, parts: &[(&str, &str)]) -> tempfile::TempDir {
    let place = place();
    let page = std::fs::read_to_string(format!("{ROOT}/{name}")).unwrap();
    let all = transcripts(&page);
    let commands = ["farlane sim ", "farlane trace ", "farlane tsn "];
    let virtual_time = |command: &str| commands.iter().any(|begin| command.starts_with(begin));
    let chosen: Vec<_> = all.iter().filter(|(command, _)| virtual_time(command)).collect();
    assert_eq!(chosen.len(), most, "{name}: {chosen:?}");
    for (command, shown) in chosen {
        if let Some((whole, part)) = parts.iter().find(|(whole, _)| command.contains(whole)) {
            rows_are_shown(name, &command.replace(whole, part), shown);
            continue;
        }
        let all = printed(&place, command).join("\n");
        let lines = |text: &str| text.trim_end().lines().map(str::to_owned).collect::<Vec<_>>();
        // The output must not continue after the end of the transcript.
        let same = is_shown(&lines(&shown.join("\n")), &lines(&all));
        assert!(same, "{name} tells something else of '{command}':\n{all}");
    }
    place
}

#[test]
fn the_guide_to_simulations() {
    check("docs/guide/simulate.md", 5, &[]);
}

#[test]
fn the_guide_to_tsn() {
    check("docs/guide/tsn.md", 6, &[]);
}

#[test]
fn the_page_on_planning() {
    check("docs/tsn-planning.md", 3, &[]);
}

#[test]
fn the_guide_to_traces() {
    let place = check("docs/guide/trace.md", 5, &[]);
    let drawn = std::fs::read(place.path().join("read.svg")).unwrap();
    let shown = std::fs::read(format!("{ROOT}/docs/figures/read.svg")).unwrap();
    assert!(drawn == shown, "docs/figures/read.svg is another diagram");
}

#[test]
fn a_part_of_the_shapers() {
    let all = "variant=alone,fifo,strict,cbs,ats,ets,cqf,gates,preemption";
    check("docs/experiments/shapers.md", 2, &[(all, "variant=strict,cbs,gates")]);
}

#[test]
fn the_guide_to_streams() {
    check("docs/guide/streams.md", 8, &[]);
}

#[test]
fn the_guide_to_a_vehicle() {
    check("docs/guide/vehicle.md", 2, &[]);
}

#[test]
fn parts_of_many_nodes() {
    check("docs/experiments/many-nodes.md", 5, &PARTS);
}

/// Checks that the page contains every paragraph that the command prints.
#[track_caller]
fn paragraphs(command: &str, name: &str) {
    let page = std::fs::read_to_string(format!("{ROOT}/{name}")).unwrap();
    let text = printed(&place(), command).join("\n");
    for paragraph in text.split("\n\n").map(str::trim_end).filter(|text| !text.is_empty()) {
        assert!(page.contains(paragraph), "{name} has not:\n{paragraph}");
    }
}

#[test]
fn parts_of_the_reproductions() {
    paragraphs("farlane reproduce nvme-tsn --only table,speeds", "docs/experiments/nvme-tsn.md");
    paragraphs("farlane reproduce expether --only ablation", "docs/experiments/expether.md");
    paragraphs("farlane reproduce tsn-ports", "docs/experiments/tsn-ports.md");
}

/// Transcripts that take minutes run only in `./test long`.
mod long {
    use super::{check, paragraphs};

    #[test]
    fn shapers() {
        check("docs/experiments/shapers.md", 2, &[]);
    }

    #[test]
    fn many_nodes() {
        check("docs/experiments/many-nodes.md", 5, &[]);
    }

    #[test]
    fn all_reproductions() {
        paragraphs("farlane reproduce nvme-tsn", "docs/experiments/nvme-tsn.md");
        paragraphs("farlane reproduce expether", "docs/experiments/expether.md");
    }
}

#[test]
fn transcripts_are_found_and_compared() {
    let page = "text\n```\n$ one -a\n1\n2\n$ two\n3\n```\n\n```console\nnone\n```\n";
    let lines = |all: &[&str]| all.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        transcripts(page),
        [("one -a".into(), lines(&["1", "2"])), ("two".into(), lines(&["3"]))]
    );
    let all = lines(&["a", "b", "c"]);
    assert!(is_shown(&all, &all) && is_shown(&lines(&["a", "...", "c"]), &all));
    assert!(is_shown(&lines(&["..."]), &all) && !is_shown(&lines(&["a", "..."]), &all[1..]));
    assert!(!is_shown(&lines(&["a", "c"]), &all) && !is_shown(&lines(&["...", "b"]), &all));
}
