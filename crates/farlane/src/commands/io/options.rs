//! What to do, in fio's words: options of the command line, or sections of a job file. The keys,
//! ranges and messages are those of `[workload]` in plans.

use keys::Origin;
use load::io::{KEYS, Request, Setting, Verify, section};
use report::{Failure, span};
use wire::Duration;

/// The workload; docs/io.md has the units.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workload, in fio's words")]
pub struct WorkArgs {
    /// read, write, randread, randwrite, rw or randrw
    #[arg(long, value_name = "KIND")]
    rw: Option<String>,
    /// Reads of 100 transfers, with rw and randrw: 50
    #[arg(long, value_name = "PERCENT")]
    rwmixread: Option<String>,
    /// Bytes a transfer, such as 4k: 4k
    #[arg(long, value_name = "SIZE")]
    bs: Option<String>,
    /// Transfers in flight a job: 1
    #[arg(long, value_name = "N")]
    iodepth: Option<String>,
    /// Jobs, each with a queue pair and a part of the namespace of its own: 1
    #[arg(long, value_name = "N")]
    numjobs: Option<String>,
    /// Bytes of a job's part, and how much it moves: an equal share of all behind --offset
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// Bytes that a job moves, instead of as many as its part has
    #[arg(long = "io_size", value_name = "SIZE")]
    io_size: Option<String>,
    /// Transfers of a job at most
    #[arg(long = "number_ios", value_name = "N")]
    number_ios: Option<String>,
    /// How often a job does all of this: 1
    #[arg(long, value_name = "N")]
    loops: Option<String>,
    /// First byte of the first job's part: 0
    #[arg(long, value_name = "SIZE")]
    offset: Option<String>,
    /// End after this time, even if less was moved; a number alone is seconds
    #[arg(long, value_name = "TIME")]
    runtime: Option<String>,
    /// Go on until --runtime is over, however much was moved
    #[arg(long = "time_based", requires = "runtime")]
    time_based: bool,
    /// Run for this long before anything is measured; a number alone is seconds
    #[arg(long = "ramp_time", value_name = "TIME", value_parser = span::seconds)]
    ramp_time: Option<Duration>,
    /// Bytes a second and job at most, such as 100m
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Pause of a job after so many transfers; a number alone is microseconds
    #[arg(long, value_name = "TIME")]
    thinktime: Option<String>,
    /// Transfers between two pauses: 1
    #[arg(long = "thinktime_blocks", value_name = "N")]
    thinktime_blocks: Option<String>,
    /// The namespace: 1
    #[arg(long, value_name = "N")]
    nsid: Option<String>,
    /// Instead of --rw: read or write --count blocks of --bs in order, one at a time
    #[arg(long, value_name = "KIND")]
    dd: Option<String>,
    /// Blocks of --dd: 100
    #[arg(long, value_name = "N")]
    count: Option<String>,
    /// Instead of --rw: so many reads of the drive's vendor ID
    #[arg(long, value_name = "N")]
    configreads: Option<String>,
    /// Pause between two of --configreads: 10us
    #[arg(long, value_name = "TIME")]
    gap: Option<String>,
    /// Compare what is read with what this run wrote there, and read everything back at the end
    #[arg(long)]
    verify: bool,
    /// Read what an earlier --rw write --verify with the same --randseed, --bs, --offset, --size and
    /// --numjobs wrote, and compare it; nothing is written
    #[arg(long = "verify_only", conflicts_with = "verify", requires = "randseed")]
    verify_only: bool,
    /// Seed of the order of blocks and of the data of --verify; a random one if it is missing
    #[arg(long, value_name = "N")]
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

    /// The name of an option that was given, if any was.
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

    /// What the options ask for. The error names the option.
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
            let what = "--rw, --dd or --configreads is missing, or a job file";
            return Err(Failure(what.into()));
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
    fn a_part_without_a_size_is_an_equal_share_of_what_is_there() {
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
    fn what_cannot_be_verified_is_refused() {
        let of = |rw: &str, verify_only: bool| {
            let rw = Some(rw.to_owned());
            let verify = !verify_only;
            let args = WorkArgs { rw, verify, verify_only, ..WorkArgs::default() };
            args.request().map(|request| request.sections[0].writes())
        };
        assert_eq!(of("write", true).ok(), Some(false), "it reads");
        assert_eq!(of("write", false).ok(), Some(true));
        assert!(of("randwrite", true).unwrap_err().to_string().contains("rw=write"));
    }
}
