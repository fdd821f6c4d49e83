use farlane_planning::bound::{Method, bound_with, known_commands};
use plan::Plan;
fn main() {
    for path in std::env::args().skip(1) {
        let (path, sets) = match path.split_once('+') {
            Some((p, s)) => (p.to_owned(), vec![s.to_owned()]),
            None => (path, vec![]),
        };
        let text = std::fs::read_to_string(&path).unwrap();
        let mut text = text;
        for s in &sets {
            let (a, b) = s.split_once("=>").unwrap();
            assert!(text.contains(a));
            text = text.replace(a, b);
        }
        let planned = match Plan::parse(&path, &text).and_then(|plan| plan.build()) {
            Ok(p) => p,
            Err(e) => {
                println!("{path}: {e}");
                continue;
            }
        };
        let commands = known_commands(&planned);
        let mut all = Vec::new();
        for method in match std::env::var("M") {
            Ok(_) => vec![Method::Plp; 4],
            _ => vec![Method::Tfa, Method::Sfa, Method::Plp, Method::Best],
        } {
            let begin = std::time::Instant::now();
            let bounds = bound_with(&planned, &commands, method);
            eprintln!("{path} {method:?} {:?}", begin.elapsed());
            all.push(bounds);
        }
        let mut better = [0; 3];
        let mut count = 0;
        let mut ratios = Vec::new();
        for (at, stream) in all[0].streams.iter().enumerate() {
            for (l, listener) in stream.listeners.iter().enumerate() {
                let get = |m: usize| {
                    all[m].streams[at].listeners[l].bound.clone().ok().map(|d| d.as_ps())
                };
                let Some(tfa) = get(0) else { continue };
                count += 1;
                for m in 1..4 {
                    if get(m).is_some_and(|b| b < tfa) {
                        better[m - 1] += 1;
                    }
                }
                ratios.push(get(3).unwrap() as f64 / tfa as f64);
                if std::env::var("V").is_ok() {
                    println!(
                        "{} > {}: {:.3} {:?} {:?} {:.3} {:?}",
                        stream.name,
                        listener.name,
                        tfa as f64 / 1e6,
                        get(1).map(|b| b as f64 / 1e6),
                        get(2).map(|b| b as f64 / 1e6),
                        get(3).unwrap() as f64 / 1e6,
                        all[3].streams[at].listeners[l].used.names()
                    );
                }
            }
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{path}: {count} listeners, better: sfa {} plp {} best {}; best/tfa least {:?} median {:?}",
            better[0],
            better[1],
            better[2],
            ratios.first(),
            ratios.get(ratios.len() / 2)
        );
    }
}
