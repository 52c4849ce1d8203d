// Units and words: numbers as people read them, and what the controller's short names mean.
const words = (() => {
  const NONE = "–";

  // Three digits that matter: "19.8", "370", "0.25".
  const three = (value) => {
    if (value === 0) return "0";
    const rounded = Number(value.toPrecision(3));
    return rounded >= 1000 ? rounded.toLocaleString("en") : String(rounded);
  };

  function rate(bps) {
    if (bps == null) return NONE;
    const [by, unit] = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]].find(([least]) => Math.round(bps) >= least) ?? [1, "bit/s"];
    return `${three(bps / by)} ${unit}`;
  }

  function ms(value) {
    if (value == null) return NONE;
    if (value === 0) return "0 ms";
    if (value >= 999.5) return `${three(value / 1000)} s`;
    return value < 0.01 ? "under 0.01 ms" : `${value < 10 ? Number(value.toPrecision(2)) : Math.round(value)} ms`;
  }

  function bytes(n) {
    if (n == null) return NONE;
    const [by, unit] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([least]) => n >= least) ?? [1, "B"];
    return `${three(n / by)} ${unit}`;
  }

  function time(seconds) {
    const s = Math.floor(seconds);
    if (s >= 172800) return `${Math.floor(s / 86400)} days`;
    if (s >= 3600) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
    if (s < 60) return `${s} s`;
    return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  }

  const ago = (seconds) => `${time(seconds < 60 ? seconds : seconds < 3600 ? seconds - seconds % 60 : seconds - seconds % 3600).replace(" 0 min", "")} ago`;
  const count = (n) => n == null ? NONE : Math.round(n).toLocaleString("en");
  const part = (share) => `${three(100 * share)} %`;

  const PLACES = {
    "access-point": "in the access point's own queue", firmware: "in the radio, behind the access point's queue",
    wan: "in front of the home, at the provider", line: "in front of the home, at the provider", all: "everywhere",
  };
  const BASES = { given: "as configured", measured: "measured", estimate: "an estimate" };
  const STATES = {
    "window-limited": "limited to its share", below: "uses less than it may", idle: "idle", closing: "ending",
    "ignores-windows": "left alone: its sender does not keep to windows",
    "scale-unknown": "left alone: older than the controller", paused: "left alone: paused",
  };
  const PARTS = { windows: "window control", updates: "window updates", udp: "UDP marking", levers: "moving levers", trials: "trying levers" };
  const TAKEN = {
    unknown: "not known yet", "real-time": "real time: left alone", elastic: "a download: gives way when packets wait",
  };
  const CAUSES = {
    "not-ip": "not IP", "other-transport": "neither TCP nor UDP", fragment: "a fragment", malformed: "a broken header",
    invalid: "TCP that does not fit its connection", "table-full": "no place in the table", syn: "begins a connection", rst: "ends one",
    "no-ack": "without ACK", authenticated: "signed: a change would break it", "zero-window": "the receiver's own stop sign",
    "stale-heartbeat": "while the controller was silent", "scale-unknown": "of a connection older than the controller",
    "no-plan": "of a flow that has no plan", unwritable: "the kernel could not change it", udp: "UDP: games, calls, small flows",
  };
  const VERDICTS = {
    shorter: "Packets wait less with control.", longer: "Packets wait longer with control.",
    "no-difference": "No difference that chance would not bring about.", "not-enough-load": "Too little was loaded to tell.",
  };
  const MEASURED = { waiting: "waiting, 95 % at most", throughput: "carried", rpm: "round trips per minute" };

  // How long a wait is for a game or a call; by Lasthop's grades: below 30 ms an A, from 60 ms on no more than a C.
  const feel = (wait) => wait < 30 ? ["short", "good"] : wait < 60 ? ["noticeable", "wait"] : ["long", "bad"];

  function label(device) {
    if (device.name) return device.name;
    return /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(device.id) ? `..${device.id.slice(9)}` : device.id;
  }

  return {
    NONE, rate, ms, bytes, time, ago, count, part, label, feel, PLACES, BASES, STATES, PARTS, TAKEN, CAUSES, VERDICTS, MEASURED,
  };
})();
