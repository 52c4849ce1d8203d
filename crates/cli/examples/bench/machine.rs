//! What the figures were measured on.

use serde_json::{Value, json};

/// CPU, cores, memory, kernel.
pub fn describe() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|l| l.starts_with(key));
        line.and_then(|l| l.split_once(':')).map_or_else(|| "unknown".to_owned(), |(_, v)| v.trim().to_owned())
    };
    let cpu = read("/proc/cpuinfo");
    json!({
        "cpu": field(&cpu, "model name"),
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "virtual": cpu.lines().any(|l| l.starts_with("flags") && l.contains(" hypervisor")),
        "memory": field(&read("/proc/meminfo"), "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").split(' ').next().unwrap_or_default(),
    })
}
