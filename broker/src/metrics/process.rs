//! The process as the kernel tells of it, under the names that every exporter has.

use super::VALID;
use super::scrape::put;
use prometheus::{Counter, Registry};

/// What `/proc/self/stat` says, in units of the kernel.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    /// Since the machine started.
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    /// The fields behind the name, which may itself hold spaces and brackets (proc(5)).
    fn parse(text: &str) -> Option<Stat> {
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // The first field here is the third of the file.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// Puts what can be read; on a machine without `/proc` that is nothing.
pub fn process(registry: &Registry) {
    let stat = std::fs::read_to_string("/proc/self/stat").ok();
    if let Some(stat) = stat.as_deref().and_then(Stat::parse) {
        put_stat(registry, &stat);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        let help = "Open file descriptors.";
        put(registry, "process_open_fds", help, open.count() as u64);
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let help = "The most file descriptors that may be open.";
    put(registry, "process_max_fds", help, limit.unwrap_or(u64::MAX));
}

fn put_stat(registry: &Registry, stat: &Stat) {
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let cpu = Counter::new("process_cpu_seconds_total", "Seconds of all cores together.");
    let cpu = cpu.expect(VALID);
    cpu.inc_by(stat.cpu_ticks as f64 / ticks);
    registry.register(Box::new(cpu)).expect("each name is registered once");
    let resident = stat.resident_pages * rustix::param::page_size() as u64;
    let gauges = [
        ("process_resident_memory_bytes", "Memory in use.", resident),
        ("process_virtual_memory_bytes", "Memory that is mapped.", stat.virtual_bytes),
        ("process_threads", "Threads.", stat.threads),
    ];
    for (name, help, value) in gauges {
        put(registry, name, help, value);
    }
    if let Some(boot) = boot_seconds() {
        let started = boot + stat.start_ticks / ticks as u64;
        put(registry, "process_start_time_seconds", "When it started, since 1970.", started);
    }
}

/// When the machine started, in seconds since 1970.
fn boot_seconds() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let text =
            "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 7 3 0 0 20 0 5 0 9000 1048576 25 1";
        let expected = Stat {
            cpu_ticks: 10,
            threads: 5,
            start_ticks: 9000,
            virtual_bytes: 1 << 20,
            resident_pages: 25,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        for text in ["", "42 (a) S 1", "no brackets"] {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
    }
}
