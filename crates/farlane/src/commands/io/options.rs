//! Workloads in fio's words, from the command line. Keys, ranges and messages are the same as in
//! job files and in `[workload]` of plans.

use keys::Origin;
use load::io::{KEYS, Request, Setting, Verify, section};
use report::{Failure, span};
use wire::Duration;

/// The workload; docs/io.md has the units.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workload, in fio's words")]
pub struct WorkArgs {
    /// Kind of transfers: read, write, randread, randwrite, rw or randrw
    #[arg(long, value_name = "KIND")]
    rw: Option<String>,
    /// Percentage of reads with rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT")]
    rwmixread: Option<String>,
    /// Size of a transfer, a multiple of the namespace's block size [default: 4k]
    #[arg(long, value_name = "BYTES")]
    bs: Option<String>,
    /// Transfers in flight per job, 1 to 1023 [default: 1]
    #[arg(long, value_name = "COUNT")]
    iodepth: Option<String>,
    /// Jobs, 1 to 64, each with its own queue pair and part of the namespace [default: 1]
    #[arg(long, value_name = "COUNT")]
    numjobs: Option<String>,
    /// Length of the part of the namespace that each job uses. A job also transfers this much,
    /// unless --io_size is given. Default: jobs share the space after --offset equally
    #[arg(long, value_name = "BYTES")]
    size: Option<String>,
    /// Bytes that a job transfers, instead of --size
    #[arg(long = "io_size", value_name = "BYTES")]
    io_size: Option<String>,
    /// Maximum number of transfers per job; without it, --size or --io_size limits the job
    #[arg(long = "number_ios", value_name = "COUNT")]
    number_ios: Option<String>,
    /// Repetitions of the work of each job [default: 1]
    #[arg(long, value_name = "COUNT")]
    loops: Option<String>,
    /// First byte of the part of the first job [default: 0]
    #[arg(long, value_name = "BYTES")]
    offset: Option<String>,
    /// Time after which the work ends, even if it is not complete. A number alone is in seconds
    #[arg(long, value_name = "TIME")]
    runtime: Option<String>,
    /// Repeat the work until --runtime is over
    #[arg(long = "time_based", requires = "runtime")]
    time_based: bool,
    /// Time of the run before the measurement starts. A number alone is in seconds
    #[arg(long = "ramp_time", value_name = "TIME", value_parser = span::seconds)]
    ramp_time: Option<Duration>,
    /// Limit of the throughput per job in bytes per second, such as 100m
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Pause of a job after --thinktime_blocks transfers. A number alone is in microseconds
    #[arg(long, value_name = "TIME")]
    thinktime: Option<String>,
    /// Transfers between two pauses [default: 1]
    #[arg(long = "thinktime_blocks", value_name = "COUNT")]
    thinktime_blocks: Option<String>,
    /// Namespace identifier [default: 1]
    #[arg(long, value_name = "NSID")]
    nsid: Option<String>,
    /// Like dd: transfer --count blocks of --bs bytes in order, one at a time; read or write.
    /// Replaces --rw
    #[arg(long, value_name = "KIND")]
    dd: Option<String>,
    /// Blocks of --dd [default: 100]
    #[arg(long, value_name = "COUNT")]
    count: Option<String>,
    /// Read the vendor ID of the drive this many times, instead of --rw
    #[arg(long, value_name = "COUNT")]
    configreads: Option<String>,
    /// Pause between two --configreads. A number alone is in microseconds [default: 10us]
    #[arg(long, value_name = "TIME")]
    gap: Option<String>,
    /// Compare each read with the data that this run wrote, and read everything back at the end
    #[arg(long)]
    verify: bool,
    /// Compare the data that an earlier run with --rw write --verify wrote. Needs the same --rw,
    /// --randseed, --bs, --offset, --size and --numjobs as that run
    #[arg(long = "verify_only", conflicts_with = "verify", requires = "randseed")]
    verify_only: bool,
    /// Seed of the block order and of the data of --verify; random by default
    #[arg(long, value_name = "NUMBER")]
    randseed: Option<u64>,
}

impl WorkArgs {
    fn values(&self) -> [Option<&str>; KEYS.len()] {
        [
            self.rw.as_deref(),
            self.rwmixread.as_deref(),
            self.bs.as_deref(),
            self.iodepth.as_deref(),
            self.numjobs.as_deref(),
            self.size.as_deref(),
            self.io_size.as_deref(),
            self.number_ios.as_deref(),
            self.loops.as_deref(),
            self.offset.as_deref(),
            self.runtime.as_deref(),
            self.time_based.then_some("on"),
            self.rate.as_deref(),
            self.thinktime.as_deref(),
            self.thinktime_blocks.as_deref(),
            self.nsid.as_deref(),
            self.dd.as_deref(),
            self.count.as_deref(),
            self.configreads.as_deref(),
            self.gap.as_deref(),
        ]
    }

    /// Returns the name of the first given option; `None` if there is none.
    pub fn any(&self) -> Option<&'static str> {
        let given = KEYS.into_iter().zip(self.values()).find(|(_, value)| value.is_some());
        let flags = [
            ("verify", self.verify),
            ("verify_only", self.verify_only),
            ("ramp_time", self.ramp_time.is_some()),
        ];
        let flag = flags.into_iter().find(|(_, set)| *set).map(|(name, _)| name);
        given.map(|(key, _)| key).or(flag).or(self.randseed.map(|_| "randseed"))
    }

    /// The request of the options. The error names the option.
    pub fn request(&self) -> Result<Request, Failure> {
        let given = KEYS.into_iter().zip(self.values());
        let setting = |(key, value): (&'static str, Option<&str>)| {
            let text = value?;
            Some((key, text.to_owned(), Origin::Option(format!("--{key} {text}"))))
        };
        let settings: Vec<Setting> = given.filter_map(setting).collect();
        let verify = match (self.verify, self.verify_only) {
            (_, true) => Verify::Only,
            (true, _) => Verify::Written,
            _ => Verify::No,
        };
        let origin = Origin::Option("the options".to_owned());
        let ramp = self.ramp_time.unwrap_or(Duration::ZERO);
        let kinds = [&self.rw, &self.dd, &self.configreads];
        if kinds.iter().all(|kind| kind.is_none()) {
            let mistake = "no workload: expected --rw, --dd, --configreads or a job file";
            return Err(Failure(mistake.into()));
        }
        let section = section(None, &settings, origin, verify, ramp)?;
        Ok(Request { sections: vec![section], randseed: self.randseed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_of_their_keys() {
        let args = |rw: &str, bs: &str, rate: &str| WorkArgs {
            rw: Some(rw.into()),
            bs: Some(bs.into()),
            rate: Some(rate.into()),
            runtime: Some("1.5".into()),
            thinktime: Some("20".into()),
            ..WorkArgs::default()
        };
        for (bs, rate) in [("4k", "100m"), ("4 KiB", "100MiB/s"), ("4096", "104857600")] {
            let section = args("read", bs, rate).request().unwrap().sections.remove(0);
            let fio = section.fio(1 << 20).unwrap();
            assert_eq!((fio.bs, fio.rate), (4096, Some(100 << 20)), "{bs} {rate}");
            let times = (fio.runtime, fio.thinktime);
            assert_eq!(times, (Some(Duration::from_ms(1_500)), Duration::from_us(20)));
        }
        for (bs, rate) in [("k", "1"), ("", "1"), ("4k", "5X")] {
            assert!(args("read", bs, rate).request().is_err(), "{bs} {rate}");
        }
    }

    #[test]
    fn part_without_size_is_equal_share_of_namespace() {
        let args = WorkArgs {
            rw: Some("randread".into()),
            numjobs: Some("3".into()),
            offset: Some("4k".into()),
            ..WorkArgs::default()
        };
        let section = args.request().unwrap().sections.remove(0);
        let fio = section.fio(1 << 20).unwrap();
        // (1 MiB - 4 KiB) / 3 is 85 blocks of 4 KiB.
        assert_eq!((fio.size, fio.offset, fio.numjobs), (85 * 4096, 4096, 3));
        assert!(!section.writes());
    }

    #[test]
    fn verify_only_of_random_writes_is_an_error() {
        let writes = |rw: &str, verify_only: bool| {
            let rw = Some(rw.to_owned());
            let verify = !verify_only;
            let args = WorkArgs { rw, verify, verify_only, ..WorkArgs::default() };
            args.request().map(|request| request.sections[0].writes())
        };
        assert_eq!(writes("write", true).ok(), Some(false), "it reads");
        assert_eq!(writes("write", false).ok(), Some(true));
        assert!(writes("randwrite", true).unwrap_err().to_string().contains("rw=write"));
    }
}
