use plan::Plan;
use plan::run::phases::{self, Phases};
use plan::run::{RunOptions, Seeds, Shifts, Watch, Bounds};
use plan::simulate::{OutputFiles, limits::Assumptions};
use farlane_planning::bound::bound;
use plan::Planned;

fn bounds(planned: &Planned) -> Bounds {
    let all = bound(planned);
    let mut map = Bounds::new();
    let ns = |d: &Result<wire::Duration, String>| d.clone().map(|d| d.as_ps().div_ceil(1000));
    for s in &all.streams {
        for l in &s.listeners {
            let name = plan::listener_name(&s.name, s.listeners.len(), &l.name);
            map.insert(format!("stream {name}"), ns(&l.bound));
        }
    }
    for c in &all.commands {
        let e = map.entry(format!("host {}", c.host)).or_insert(Ok(0));
        *e = match (e.clone(), ns(&c.bound)) { (Ok(a), Ok(b)) => Ok(a.max(b)), (Err(w), _) | (_, Err(w)) => Err(w) };
    }
    map
}

fn main() {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap();
    let n: u64 = args.next().unwrap().parse().unwrap();
    let seeds: u64 = args.next().unwrap().parse().unwrap();
    let show: usize = args.next().unwrap().parse().unwrap();
    let mut plan = Plan::read(std::path::Path::new(&file)).unwrap();
    for set in args { let (k, v) = set.split_once('=').unwrap(); plan = plan.with(k, v, "--set").unwrap(); }
    let keys: Vec<String> = Plan::SHIFTED.map(str::to_owned).into();
    let mut results: Vec<[Phases; 2]> = Vec::new();
    let mut times = [0.0; 2];
    for seed in 1..=seeds {
        let mut run = |search: Option<fn(&Planned) -> Bounds>| {
            let shifts = Shifts { trials: n, keys: keys.clone(), search };
            let options = RunOptions { name: "p".into(), requested: OutputFiles::default(), assumed: Assumptions::default(), text: String::new(), phases: None, tables: None };
            let watch = Watch { is_stopped: &|| false, progress: &|_| {} };
            let t = std::time::Instant::now();
            let seeds = Seeds { first: Some(seed), runs: None };
            let document = phases::run(&plan, (&seeds, &shifts), options, &watch).unwrap_or_else(|e| panic!("{e:?}")).0;
            times[search.is_some() as usize] += t.elapsed().as_secs_f64();
            document.phases.unwrap()
        };
        results.push([run(None), run(Some(bounds))]);
    }
    let median = |mut v: Vec<f64>| { v.sort_by(f64::total_cmp); v[v.len() / 2] };
    let rows = results[0][0].observed.len();
    let (mut tr, mut ts, mut gain, mut wins, mut losses) = (vec![], vec![], vec![], 0, 0);
    for row in 0..rows {
        let col = |k: usize| median(results.iter().map(|r| r[k].observed[row].largest_ns as f64).collect());
        let (r, s) = (col(0), col(1));
        let g = results[0][1].observed[row].guaranteed.clone().unwrap();
        let b = g.bound_ns;
        for res in &results { for k in 0..2 { let o = &res[k].observed[row]; if let Some(b) = b && o.largest_ns > b {
            println!("DEFECT {file} seed {} {} observed {} bound {} trial {} set {:?}", res[k].seed, o.name, o.largest_ns, b, o.trial, res[k].trials.iter().find(|t| t.trial == o.trial).map(|t| &t.set)); } } }
        gain.push(s / r.max(1.0)); if s > r * 1.001 { wins += 1 } if s * 1.001 < r { losses += 1 }
        if let Some(b) = b { if r > 0.0 { tr.push(b as f64 / r); ts.push(b as f64 / s); } }
        if row < show { println!("{:40} random {:9.3} search {:9.3} bound {:>10} {:.3} {:.3} {} trials {:?}", results[0][0].observed[row].name, r / 1e3, s / 1e3,
            b.map_or("none".into(), |b| format!("{:.3}", b as f64 / 1e3)), b.map_or(0.0, |b| b as f64 / r), b.map_or(0.0, |b| b as f64 / s), g.why.unwrap_or_default(), results.iter().map(|r| r[1].observed[row].trial).collect::<Vec<_>>()); }
    }
    let worst = |v: &Vec<f64>| v.iter().cloned().fold(0.0, f64::max);
    println!("{file}: {rows} rows, median gain {:.3}, max gain {:.3}, better {wins} worse {losses}, tightness median random {:.3} search {:.3}, max {:.3} {:.3}, n bound {} time {:.1} {:.1}",
        median(gain.clone()), worst(&gain), if tr.is_empty() {0.0} else {median(tr.clone())}, if ts.is_empty() {0.0} else {median(ts.clone())}, worst(&tr), worst(&ts), tr.len(), times[0], times[1]);
}
