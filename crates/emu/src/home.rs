//! A made-up home as the kernel sees it: one namespace and one or two TAPs per host.

use crate::address::{AddressPlan, Port};
use crate::error::Error;
use crate::host;
use crate::netns::Namespace;
use crate::spawn::{Child, Nursery};
use crate::storage;
use crate::tap::{self, Tap};
use crate::user::User;
use lasthop_home::scenario::{HostId, Scenario, Storage};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Every namespace and TAP of a home. Dropping it takes everything away, programs included.
///
/// Programs find the other hosts in their environment: `LASTHOP_W3=10.1.1.3` for each (dots and dashes of a name
/// become `_`), the same with `_V6`, `LASTHOP_HOST`, the name of their own host, and `LASTHOP_STORAGE`, a folder for
/// files that all programs of the host share.
pub struct Home {
    // First, so that programs end while their networks still stand.
    nursery: Nursery,
    plan: AddressPlan,
    /// `hosts[0]` the access point, then servers, then stations.
    hosts: Vec<Host>,
    /// `taps[port]`.
    taps: Vec<Arc<Tap>>,
    environment: Vec<(String, String)>,
}

struct Host {
    name: String,
    namespace: Namespace,
}

impl Home {
    /// Builds the networks of all hosts. Nothing moves between them before an engine runs.
    ///
    /// # Errors
    /// What is missing and what to type; see [`Error`].
    pub fn new(scenario: &Scenario) -> Result<Self, Error> {
        if !Path::new("/dev/net/tun").exists() {
            return Err(Error::NoTun(std::io::ErrorKind::NotFound.into()));
        }
        if let Some(slow) = scenario.stations.iter().find(|s| s.storage.is_slow()) {
            storage::check(&slow.name)?;
        }
        let plan = AddressPlan { servers: scenario.servers.len(), stations: scenario.stations.len() };
        let routes = routes(scenario);
        let mut hosts = Vec::new();
        let mut taps = Vec::new();
        for id in all(&plan) {
            let name = scenario.host_name(id).to_owned();
            let sack = !scenario.flows.iter().any(|f| f.from == id && f.transport().is_some_and(|tcp| !tcp.sack));
            let about = About { name: &name, sack, aggregates: scenario.hop.has_classes() };
            let (namespace, own) = Namespace::create(|| build(&plan, id, &about, &routes))?;
            hosts.push(Host { name, namespace });
            taps.extend(own.into_iter().map(Arc::new));
        }
        let environment = environment(scenario, &plan);
        let stores = all(&plan).map(|id| (scenario.host_name(id).to_owned(), storage_of(scenario, id))).collect();
        Ok(Self { nursery: Nursery::new(stores)?, plan, hosts, taps, environment })
    }

    /// Starts a program of root's in a host. It ends when the returned child is dropped, and at the latest with this process.
    ///
    /// # Errors
    /// [`Error::Spawn`].
    pub fn spawn(&self, host: HostId, command: Command) -> Result<Child, Error> {
        self.start(host, command, None)
    }

    /// The same as `user`, without capabilities and without a way to gain any.
    ///
    /// # Errors
    /// [`Error::Spawn`].
    pub fn spawn_as(&self, user: &User, host: HostId, mut command: Command) -> Result<Child, Error> {
        command.envs(user.environment(Path::new(storage::FOLDER)));
        self.start(host, command, Some(user.clone()))
    }

    fn start(&self, host: HostId, mut command: Command, user: Option<User>) -> Result<Child, Error> {
        let program = command.get_program().to_string_lossy().into_owned();
        let number = index(&self.plan, host);
        let host = &self.hosts[number];
        command.envs(self.environment.iter().map(|(k, v)| (k, v))).env("LASTHOP_HOST", &host.name);
        self.nursery.spawn(command, user, number, &host.namespace).map_err(|source| Error::Spawn {
            program,
            host: host.name.clone(),
            source,
        })
    }

    /// The IPv4 address of a host.
    #[must_use]
    pub fn address(&self, host: HostId) -> Ipv4Addr {
        AddressPlan::v4(host)
    }

    /// Who has which address.
    #[must_use]
    pub fn plan(&self) -> AddressPlan {
        self.plan
    }

    /// The network of a host, for threads to enter.
    #[must_use]
    pub fn namespace(&self, host: HostId) -> &Namespace {
        &self.host(host).namespace
    }

    /// The engine's ends of all interfaces, by port.
    #[must_use]
    pub fn taps(&self) -> Vec<Arc<Tap>> {
        self.taps.clone()
    }

    /// The names of all interfaces, by port, as a capture shows them.
    #[must_use]
    pub fn interface_names(&self) -> Vec<String> {
        let name = |port| format!("{} {}", self.host(self.plan.host(port)).name, AddressPlan::interface(port));
        (0..self.plan.ports() as u16).map(|port| name(Port(port))).collect()
    }

    /// Frames lost between the hosts' kernels and the engine.
    ///
    /// # Errors
    /// When a namespace can no longer be looked into.
    pub fn drops(&self) -> Result<u64, Error> {
        let count = |name: &str| tap::dropped_here(name).map_err(Error::system("cannot read /proc/net/dev"));
        let in_access_point = || Ok(count("wan0")? + count("wlan0")?);
        let mut sum = self.hosts[0].namespace.run(in_access_point)?;
        for host in &self.hosts[1..] {
            sum += host.namespace.run(|| count("eth0"))?;
        }
        Ok(sum)
    }

    fn host(&self, host: HostId) -> &Host {
        &self.hosts[index(&self.plan, host)]
    }
}

/// What a host reads and writes at; all but stations with `storage` at any speed.
fn storage_of(scenario: &Scenario, host: HostId) -> Storage {
    match host {
        HostId::Station(i) => scenario.stations[i].storage,
        HostId::Server(_) | HostId::AccessPoint => Storage::default(),
    }
}

fn index(plan: &AddressPlan, host: HostId) -> usize {
    match host {
        HostId::AccessPoint => 0,
        HostId::Server(i) => 1 + i,
        HostId::Station(i) => 1 + plan.servers + i,
    }
}

fn all(plan: &AddressPlan) -> impl Iterator<Item = HostId> + use<> {
    let servers = (0..plan.servers).map(HostId::Server);
    std::iter::once(HostId::AccessPoint).chain(servers).chain((0..plan.stations).map(HostId::Station))
}

type Routes = BTreeMap<(HostId, HostId), host::RouteHints>;

/// Routes that flows need beyond the default one. Flows between the same hosts share them: the smaller window wins,
/// and one receiver that acknowledges at once makes all of them do so.
fn routes(scenario: &Scenario) -> Routes {
    let mut routes = Routes::new();
    for flow in &scenario.flows {
        let Some(tcp) = flow.transport() else { continue };
        let is_split = scenario.is_split(flow);
        let halves = [(flow.from, HostId::AccessPoint), (HostId::AccessPoint, flow.to)];
        for (from, to) in if is_split { halves.to_vec() } else { vec![(flow.from, flow.to)] } {
            let out = routes.entry((from, to)).or_default();
            out.initial_window = Some(out.initial_window.map_or(tcp.initial_window, |w| w.min(tcp.initial_window)));
            out.ecn = tcp.ecn;
            if tcp.ecn {
                routes.entry((to, from)).or_default().ecn = true;
            }
            if !tcp.delayed_ack {
                routes.entry((to, from)).or_default().quick_ack = true;
            }
        }
    }
    routes
}

/// What a host's network is like.
struct About<'a> {
    name: &'a str,
    sack: bool,
    /// Its home's air does.
    aggregates: bool,
}

/// Runs on a thread inside the new namespace.
fn build(plan: &AddressPlan, id: HostId, about: &About<'_>, routes: &Routes) -> Result<Vec<Tap>, Error> {
    let ports: Vec<Port> = match id {
        HostId::AccessPoint => vec![AddressPlan::WAN, AddressPlan::WLAN],
        _ => vec![plan.port(id)],
    };
    let interfaces: Vec<&str> = ports.iter().map(|port| AddressPlan::interface(*port)).collect();
    let taps = interfaces.iter().map(|name| Tap::create(name, about.aggregates)).collect::<Result<_, _>>()?;
    let mut settings = host::settings(id, &interfaces);
    if !about.sack {
        settings.push(("ipv4/tcp_sack".into(), "0".into()));
    }
    host::write_settings(&settings)?;
    let mut lines = host::batch(plan, id, host::has_v6());
    lines.extend(
        routes.iter().filter(|((from, _), _)| *from == id).map(|((_, to), hints)| host::route(id, *to, *hints)),
    );
    if host::has_traffic_control() {
        host::run_batch("tc", about.name, &host::queues(&interfaces))?;
    }
    host::run_batch("ip", about.name, &lines)?;
    Ok(taps)
}

fn environment(scenario: &Scenario, plan: &AddressPlan) -> Vec<(String, String)> {
    let of = |host| {
        let name: String =
            scenario.host_name(host).chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        [
            (format!("LASTHOP_{name}"), AddressPlan::v4(host).to_string()),
            (format!("LASTHOP_{name}_V6"), AddressPlan::v6(host).to_string()),
        ]
    };
    let storage = ("LASTHOP_STORAGE".to_owned(), storage::FOLDER.to_owned());
    all(plan).flat_map(of).chain([storage]).collect()
}
