use farlane_planning::bound::{Method, bound};
use plan::Plan;
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let planned = Plan::parse(&path, &text).and_then(|plan| plan.build()).unwrap();
        let report = sim::World::new(&planned.config).unwrap().run().unwrap();
        for method in [Method::Tfa, Method::Best] {
            let bounds = bound(&planned, method);
            for (b, (_, id)) in bounds.streams.iter().zip(&planned.streams) {
                let s = report.streams.iter().find(|s| s.stream == *id).unwrap();
                for (l, seen) in b.listeners.iter().zip(&s.listeners) {
                    println!(
                        "{method:?} {} {}: bound {:?} ({:?}) seen {:?}",
                        b.name,
                        l.name,
                        l.bound,
                        l.used.names(),
                        seen.latency.longest()
                    );
                    if std::env::var("H").is_ok() {
                        for h in &l.hops {
                            println!("    {} {:?}", h.port, h.bound);
                        }
                    }
                }
            }
        }
    }
}
