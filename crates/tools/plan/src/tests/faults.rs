use super::{built, fails};

const PLAN: &str = "[nodes.rear]\noutages = [\"10ms..40ms\"]\n[nodes.other]\n\
    [bridges.b]\noutages = [\"3s..4s\"]\n[cables.x]\na = \"one\"\nb = \"b\"\ncuts = [\"1ms..2ms\"]\n\
    [cables.y]\na = \"rear\"\nb = \"b\"\ncuts = [\"2s..\"]\n[cables.z]\na = \"other\"\nb = \"b\"\n\
    [drives.d]\nnode = \"rear\"\nfaults = [\"late=5ms,at=2s\", \"poison\"]\n\
    [drives.e]\nnode = \"other\"\n[hosts.one]\n[workload]\nconfigreads = 1\n";

#[test]
fn faults_of_a_plan_become_faults_of_live_nodes() {
    let planned = built(PLAN);
    let live = |name: &str| -> Vec<String> {
        let link = planned.links.iter().position(|drive| drive == name).expect("a drive");
        planned.live_faults(link).iter().map(ToString::to_string).collect()
    };
    let through = ["link-down,at=1ms,for=1ms", "link-down,at=3s,for=1s"];
    let own = ["late=5ms,at=2s", "poison", "stop,at=10ms,for=30ms"];
    let [first, last] = through;
    assert_eq!(live("d"), [&own[..], &[first, "link-down,at=2s", last]].concat());
    assert_eq!(live("e"), through);
}

#[test]
fn a_fault_of_a_node_is_no_fault_of_a_drive() {
    let plan = |fault: &str| {
        format!("[drive]\nfaults = [\"poison\", \"{fault}\"]\n[workload]\nconfigreads = 1\n")
    };
    fails(
        &plan("stop,at=1s"),
        "p.toml:2:21: faults: 'stop,at=1s' is a fault of a node: expected late, error, \
         lost-completion or poison; plans have 'outages' of nodes and 'cuts' of cables",
    );
    fails(
        &plan("error=medi"),
        "p.toml:2:21: faults: unknown error of a fault 'medi'; did you mean 'media'? There are: \
         media, read-only, no-space, not-ready, internal",
    );
}
