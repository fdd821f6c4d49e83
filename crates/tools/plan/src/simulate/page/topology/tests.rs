//! Pictures of all plans in `plans/`, and of larger ones.

use super::draw::Drawing;
use super::place::Rect;
use super::{Node, Picture, map};
use crate::Plan;
use std::path::{Path, PathBuf};

fn plans() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension() == Some("toml".as_ref())).collect();
    files.sort();
    files
}

fn picture(plan: &Plan) -> Picture {
    let planned = plan.build().unwrap();
    Picture::new(&planned.config, &|name| planned.link_name(name))
}

/// Checks that every label is in the picture and overlaps no box and no other label, and that no
/// boxes overlap.
fn is_clear(name: &str, picture: &Picture) {
    let drawing = Drawing::new(picture);
    let boxes: Vec<Rect> = drawing.boxes.values().copied().collect();
    for (number, one) in boxes.iter().enumerate() {
        assert!(!boxes[..number].iter().any(|other| one.meets(other)), "{name}: boxes");
    }
    let labels: Vec<Rect> = drawing.labels.iter().flatten().copied().collect();
    assert_eq!(labels.len(), picture.edges.len(), "{name}: a label a line");
    for (number, label) in labels.iter().enumerate() {
        let others = boxes.iter().chain(&labels[..number]);
        assert!(!others.into_iter().any(|other| label.meets(other)), "{name}: {label:?}");
        assert!(label.left() >= 0.0 && label.right() <= drawing.size.0, "{name}: {label:?}");
    }
    // No line crosses the label of another line.
    for (number, label) in drawing.labels.iter().enumerate() {
        let others = drawing.lines.iter().enumerate().filter(|(other, _)| *other != number);
        for (_, line) in others {
            let through = |pair: &[(f64, f64)]| label.unwrap().is_crossed(pair[0], pair[1]);
            assert!(!line.points.windows(2).any(through), "{name}: through {number}");
        }
    }
}

fn names_differ(name: &str, picture: &Picture) {
    let mut names: Vec<&str> =
        picture.levels.iter().flatten().map(|(_, words)| words[0].as_str()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "{name}: {names:?}");
}

#[test]
fn topology_boxes_have_unique_names() {
    for file in plans() {
        names_differ(&file.display().to_string(), &picture(&Plan::read(&file).unwrap()));
    }
    // Things of different kinds may have one name, and drives may have similar names.
    let text = "[hosts.store]\ndrives = [\"store\", \"a_drive_with_a_long_name_1\"]\n\
                [hosts.two]\ndrives = [\"device\", \"a_drive_with_a_long_name_2\"]\n\
                [drives.store]\n[drives.device]\n[drives.a_drive_with_a_long_name_1]\n\
                [drives.a_drive_with_a_long_name_2]\n[bridges.br]\n\
                [workload]\nconfigreads = 1\n";
    let picture = picture(&Plan::parse("p.toml", text).unwrap());
    names_differ("made up", &picture);
    let words = picture.levels.iter().flatten().map(|(_, words)| words[0].as_str());
    let words: Vec<&str> = words.collect();
    for name in ["host store", "drive store", "store: Ethernet", "node device", "drive device"] {
        assert!(words.contains(&name), "no {name} in {words:?}");
    }
}

#[test]
fn topology_boxes_do_not_overlap_in_example_plans() {
    let plans = plans();
    assert!(plans.len() >= 8, "{plans:?}");
    for file in plans {
        let picture = picture(&Plan::read(&file).unwrap());
        if !picture.is_large() {
            is_clear(&file.display().to_string(), &picture);
        }
    }
}

/// The nodes of large plans are apart, and every cable is drawn once.
#[test]
fn map_of_a_large_plan_has_every_node_and_cable() {
    let file = plans().into_iter().find(|file| file.ends_with("mesh-of-rings.toml")).unwrap();
    let picture = picture(&Plan::read(&file).unwrap());
    let svg = map::svg(&picture);
    let count = |words: &str| svg.matches(words).count();
    assert_eq!(count(" data-c="), picture.edges.len());
    assert_eq!(count(" data-n="), picture.levels.iter().map(Vec::len).sum::<usize>());
    let mut dots: Vec<&str> = svg.split("<circle ").skip(1).collect();
    dots.iter_mut().for_each(|dot| *dot = dot.split(" r=").next().unwrap());
    let all = dots.len();
    dots.sort_unstable();
    dots.dedup();
    assert!(
        all > 0 && all - dots.len() < all / 50,
        "{} of {all} have a place of their own",
        dots.len()
    );
}

#[test]
fn topology_boxes_do_not_overlap_in_large_plans() {
    for (hosts, nodes) in [("1", "8"), ("8", "8"), ("16", "4"), ("32", "32")] {
        let file = plans().into_iter().find(|file| file.ends_with("scale-out.toml")).unwrap();
        let plan = Plan::read(&file).unwrap();
        let plan = plan.with("hosts.host.count", hosts, "test").unwrap();
        let plan = plan.with("nodes.box.count", nodes, "test").unwrap();
        is_clear(&format!("{hosts} hosts, {nodes} nodes"), &picture(&plan));
    }
}

#[test]
fn drive_with_several_hosts_is_drawn_once() {
    let file = plans().into_iter().find(|file| file.ends_with("shared-vehicle.toml")).unwrap();
    let picture = picture(&Plan::read(&file).unwrap());
    let drives: Vec<_> = picture.levels[4].iter().map(|(_, words)| words.join("; ")).collect();
    assert_eq!(drives, ["central; NVMe, 64 MiB"]);
    let lines = picture.edges.iter().filter(|edge| matches!(edge.b, Node::Drive(..)));
    assert_eq!(lines.count(), 1);
}

/// A drive that moves to another host is drawn once.
#[test]
fn a_drive_that_moves_is_one_drive() {
    let file = plans().into_iter().find(|file| file.ends_with("handover.toml")).unwrap();
    let picture = picture(&Plan::read(&file).unwrap());
    let drives: Vec<_> = picture.levels[4].iter().map(|(_, words)| words.join("; ")).collect();
    assert_eq!(drives, ["goes; NVMe, 64 MiB; goes to two at 6 ms", "stays; NVMe, 64 MiB"]);
    let lines = picture.edges.iter().filter(|edge| matches!(edge.b, Node::Drive(..)));
    assert_eq!(lines.count(), 2);
}
