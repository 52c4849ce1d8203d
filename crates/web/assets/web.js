// The live page: asks what it may do, listens to the server's events, and shows the newest. It asks no other machine for anything,
// what comes is only ever text, and names of devices are in memory alone.
(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const { rate, ms, time, count, part, label } = words;
  // Who is silent for so long has gone, ms.
  const SILENCE = 15000;
  const RETRY = { first: 1000, most: 10000 };

  let session = null, stream = null, heardAt = 0, retryIn = RETRY.first, retry = null;
  let newest = null, isToBeShown = false, lately = null, charts = null, names = new Map();
  // How many events came: tests read it.
  document.documentElement.dataset.events = "0";

  // --- Who may see what, and the connection ---

  async function start() {
    clearTimeout(retry);
    stop();
    try {
      const answer = await fetch("session", { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      session = await answer.json();
    } catch (error) {
      return again("The server of this page does not answer; it is asked again.");
    }
    at("about").textContent = `lasthop web ${session.version.split(" ")[0]}, ${1000 / session.every_ms >= 1 ? `${words.count(1000 / session.every_ms)} updates a second` : `an update every ${time(session.every_ms / 1000)}`}.`;
    at("logout").hidden = !session.logged_in;
    at("pause").hidden = !session.controls;
    at("more").hidden = session.controls || !session.could_log_in || session.log || !session.reads;
    if (!session.reads) return ask();
    at("login").hidden = true;
    lately ??= new Lately(Math.max(1, Math.ceil(session.every_ms / 1000)));
    charts ??= new Charts(lately);
    document.querySelectorAll(".span").forEach((node) => write(node, time(COLUMNS * lately.stepS)));
    document.querySelectorAll(".step").forEach((node) => write(node, time(lately.stepS)));
    listen();
    if (session.measurement) measurement();
  }

  function listen() {
    heardAt = Date.now();
    stream = new EventSource("events");
    stream.onmessage = (event) => {
      heardAt = Date.now();
      retryIn = RETRY.first;
      newest = JSON.parse(event.data);
      document.documentElement.dataset.events = String(Number(document.documentElement.dataset.events) + 1);
      if (newest.status) lately.begins = lately.take(newest.status, heardAt) || lately.begins;
      show();
    };
    stream.onerror = () => {
      if (stream?.readyState === EventSource.CLOSED) again("The server of this page shows nothing more; it is asked again.");
      else state("gone", "connection lost");
    };
  }

  function stop() {
    stream?.close();
    stream = null;
  }

  function again(why) {
    stop();
    notice(why);
    state("gone", "no connection");
    clearTimeout(retry);
    retry = setTimeout(start, retryIn);
    retryIn = Math.min(RETRY.most, retryIn * 2);
  }

  // A sleeping machine, a network that went away: the browser may not notice, a clock does.
  setInterval(() => {
    if (stream && Date.now() - heardAt > Math.max(SILENCE, 3 * session.every_ms)) start();
  }, 2000);

  function ask() {
    at("figures").hidden = true;
    at("login").hidden = false;
    notice("");
    state("wait", "not logged in");
    at("token").focus();
  }

  at("login").addEventListener("submit", async (event) => {
    event.preventDefault();
    write(at("login-said"), "");
    const token = at("token").value;
    at("token").value = "";
    try {
      const answer = await fetch("login", { method: "POST", body: token });
      if (!answer.ok) return write(at("login-said"), (await answer.text()).trim());
      start();
    } catch (error) {
      write(at("login-said"), "The server does not answer; try again.");
    }
  });
  at("logout").addEventListener("click", async () => {
    await fetch("logout", { method: "POST" }).catch(() => null);
    location.reload();
  });
  at("more").addEventListener("click", () => {
    write(at("login-why"), "Pausing and resuming needs the token for it.");
    at("login").hidden = false;
    at("token").focus();
  });

  // --- What is said above the figures ---

  function state(kind, text) {
    const node = at("state");
    write(node, text);
    if (node.className !== `state ${kind}`) node.className = `state ${kind}`;
  }

  function notice(text) {
    write(at("notice"), text);
    at("notice").hidden = !text;
  }

  // --- Showing ---

  // The newest of what came since the last picture; a hidden page draws nothing.
  function show() {
    if (isToBeShown || document.hidden) return;
    isToBeShown = true;
    requestAnimationFrame(() => {
      isToBeShown = false;
      if (newest) render(newest);
    });
  }
  document.addEventListener("visibilitychange", () => { if (newest) { if (lately) lately.begins = true; show(); } });

  function render({ status, nobody, log }) {
    emulation(log);
    if (!status) {
      state("gone", session.log ? "no news" : "no controller");
      notice(nobody);
      const isShown = !at("figures").hidden;
      if (isShown && lately.advance(Date.now())) charts.draw();
      if (log) at("figures").hidden = false;
      at("figures").classList.add("old");
      document.title = "Lasthop: nobody answers";
      return;
    }
    notice("");
    const isNew = at("figures").hidden;
    at("figures").hidden = false;
    at("figures").classList.remove("old");
    head(status);
    warnings(status);
    names = new Map(status.devices.map((device) => [device.id, label(device)]));
    direction("down", status.directions.down);
    direction("up", status.directions.up);
    tables(status);
    decisions(status);
    paused(status);
    if (isNew || lately.begins) {
      lately.begins = false;
      charts.draw();
      places(status);
      const waits = Math.max(status.directions.down.queue_ms, status.directions.up.queue_ms);
      document.title = waits > 0 ? `${ms(waits)} – Lasthop` : "Lasthop";
    }
  }

  function head(status) {
    const hooked = status.interfaces.filter((one) => one.role === "lan").map((one) => one.name).join(", ");
    write(at("who"), `${status.dry_run ? "watches" : "controls"} ${hooked || "no interface yet"} for ${time(status.running_s)}, version ${status.version}`);
    const isPaused = (status.paused ?? []).some((one) => one.device == null);
    if (isPaused) state("gone", "paused");
    else if (status.dry_run) state("wait", "dry run: changes nothing");
    else state("live", status.nothing_to_do ? "live: nothing to do" : "live: at work");
  }

  function warnings(status) {
    const lines = [...(status.waits ?? [])];
    for (const one of status.interfaces) if (one.state !== "up") lines.push(`${one.name} is ${one.state}`);
    if (status.bypass.bypasses_control) lines.push(`${part(status.bypass.share)} of the traffic goes past control (hardware flow offload?)`);
    for (const one of status.found ?? []) lines.push(`${one.interface} has ${one.what}: ${one.follows}`);
    if (status.window_updates?.off) lines.push(`no window updates are sent: ${status.window_updates.off}`);
    if (status.table.full_s != null) lines.push("the table of connections is full; newer ones pass uncontrolled");
    list(at("warnings"), lines);
  }

  // A list of short texts.
  function list(place, lines) {
    place.hidden = lines.length === 0;
    while (place.children.length > lines.length) place.lastChild.remove();
    while (place.children.length < lines.length) place.append(element("li"));
    lines.forEach((line, i) => write(place.children[i], line));
  }

  const cards = {};
  function card(name) {
    if (cards[name]) return cards[name];
    const own = {};
    const make = (parent, of, kind, tag = "p") => parent.appendChild(own[of] = element(tag, null, kind));
    const two = make(at(name), "two", "two", "div");
    const [left, right] = [make(two, "left", "", "div"), make(two, "right", "", "div")];
    left.append(element("p", "waits now", "quiet"));
    make(left, "wait", "big");
    make(left, "feel", "word");
    make(left, "place", "quiet");
    right.append(element("p", "carries", "quiet"));
    make(right, "rate", "big");
    make(right, "used", "word");
    make(right, "capacity", "quiet");
    own.fill = make(at(name), "bar", "bar", "div").appendChild(element("div"));
    own.bar.setAttribute("aria-hidden", "true");
    make(at(name), "minute", "quiet");
    make(at(name), "limits", "quiet");
    return cards[name] = own;
  }

  function direction(name, of) {
    const own = card(name), waits = of.queue_ms > 0;
    write(own.wait, ms(of.queue_ms));
    const [word, kind] = words.feel(of.queue_ms);
    write(own.feel, waits ? word : "nothing waits");
    own.feel.className = `word ${kind}`;
    write(own.place, waits ? words.PLACES[of.queue_place] ?? of.queue_place ?? "" : "");
    write(own.rate, rate(of.rate_bps));
    const used = of.capacity_bps > 0 ? of.rate_bps / of.capacity_bps : null;
    write(own.used, used == null ? "" : `${Math.round(100 * used)} % used`);
    const spread = of.capacity_spread == null ? "" : `, ± ${part(of.capacity_spread)}`;
    write(own.capacity, of.capacity_bps == null ? "capacity not known yet" : `of ${rate(of.capacity_bps)}, ${words.BASES[of.capacity_basis] ?? of.capacity_basis ?? "?"}${spread}`);
    own.fill.style.width = `${Math.min(100, 100 * (used ?? 0)).toFixed(1)}%`;
    const minute = lately.last(name, 60);
    write(own.minute, minute?.count > 0 ? `last minute: half waited up to ${ms(quantile(minute, 0.5))}, 95 % up to ${ms(quantile(minute, 0.95))}` : "last minute: nothing told of waiting");
    write(own.limits, of.limits ? "windows are limited, so that no more can wait" : "windows are as their receivers offer them");
  }

  const nameOf = (row) => names.get(row.device) ?? row.device;
  const tableOf = {
    devices: new LiveTable("devices", "Devices with a flow", [
      { head: "device", text: (row) => label(row), value: label },
      { head: "down", text: (row) => rate(row.down_bps), value: (row) => row.down_bps, number: true, share: (row) => row.down_bps / row.all.down },
      { head: "up", text: (row) => rate(row.up_bps), value: (row) => row.up_bps, number: true, share: (row) => row.up_bps / row.all.up },
      { head: "waits down", text: (row) => ms(row.down_waiting_ms), value: (row) => row.down_waiting_ms ?? -1, number: true },
      { head: "waits up", text: (row) => ms(row.up_waiting_ms), value: (row) => row.up_waiting_ms ?? -1, number: true, wide: true },
      { head: "flows", text: (row) => count(row.flows), value: (row) => row.flows, number: true, wide: true },
    ], { sortedBy: 1, nothing: "Nobody carries anything now." }),
    flows: new LiveTable("flows", "Directions of connections that carry payload; station on the left", [
      { head: "connection", text: (row) => row.flow },
      { head: "device", text: nameOf, value: nameOf },
      { head: "rate", text: (row) => rate(row.rate_bps), value: (row) => row.rate_bps, number: true },
      { head: "may use", text: (row) => rate(row.share_bps), value: (row) => row.share_bps ?? -1, number: true },
      { head: "what is done", text: (row) => words.STATES[row.state] ?? row.state, value: (row) => row.state },
      { head: "window", text: (row) => words.bytes(row.window_bytes), value: (row) => row.window_bytes, number: true, wide: true },
      { head: "round trip", text: (row) => ms(row.local_rtt_ms == null && row.remote_rtt_ms == null ? null : (row.local_rtt_ms ?? 0) + (row.remote_rtt_ms ?? 0)), number: true, wide: true },
      { head: "carried", text: (row) => words.bytes(row.bytes), value: (row) => row.bytes, number: true, wide: true },
    ], { sortedBy: 2, most: 50, nothing: "No connection carries payload now." }),
    udp: new LiveTable("udp", "UDP flows that ever sent a full packet", [
      { head: "flow", text: (row) => row.tunnel ? `${row.flow} (${row.tunnel})` : row.flow },
      { head: "device", text: nameOf, wide: true },
      { head: "rate", text: (row) => rate(row.rate_bps), value: (row) => row.rate_bps, number: true },
      { head: "may use", text: (row) => row.share_bps == null ? "all" : rate(row.share_bps), number: true, wide: true },
      { head: "taken for", text: (row) => words.TAKEN[row.taken_for] ?? row.taken_for, words: true },
      { head: "why", text: (row) => row.why, words: true },
      { head: "marked", text: (row) => count(row.marked), number: true, wide: true },
      { head: "dropped", text: (row) => count(row.dropped), number: true, wide: true },
    ], { sortedBy: 2, most: 50, nothing: "No UDP flow has sent a full packet." }),
    left: new LiveTable("left", "Packets since the controller came", [
      { head: "cause", text: ([cause]) => words.CAUSES[cause] ?? cause, words: true },
      { head: "packets", text: ([, n]) => count(n), value: ([, n]) => n, number: true },
    ], { sortedBy: 1, nothing: "Every packet was under control." }),
    places: new LiveTable("places", "Intervals of the controller in which something told of waiting", [
      { head: "direction and place", text: (row) => `${row.direction}, ${words.PLACES[row.place] ?? row.place}`, words: true },
      { head: "half", text: (row) => ms(quantile(histogram(row), 0.5)), number: true },
      { head: "95 %", text: (row) => ms(quantile(histogram(row), 0.95)), number: true },
      { head: "99 %", text: (row) => ms(quantile(histogram(row), 0.99)), number: true },
      { head: "intervals", text: (row) => count(row.count), number: true },
    ], { nothing: "Nothing has told of waiting yet." }),
  };

  function tables(status) {
    const all = { down: 0, up: 0 };
    for (const device of status.devices) {
      all.down += device.down_bps;
      all.up += device.up_bps;
    }
    tableOf.devices.set(status.devices.map((device) => ({ ...device, all })), (row) => row.id);
    write(at("flows-head"), `Connections (${status.flows.length})`);
    if (at("flows-head").parentNode.open) tableOf.flows.set(status.flows, (row) => row.flow);
    tableOf.udp.set(status.udp, (row) => row.flow);
    tableOf.left.set(Object.entries(status.control.not_controlled).filter(([, n]) => n > 0), ([cause]) => cause);
    write(at("share"), `${part(status.control.controllable_share)} of all bytes were of flows whose window can be controlled.`);
  }
  at("flows-head").parentNode.addEventListener("toggle", show);

  function places(status) {
    const rows = [["downloads", status.directions.down], ["uploads", status.directions.up]].flatMap(([direction, of]) =>
      (of.waiting ?? []).filter((one) => one.count > 0).map((one) => ({ ...one, direction })));
    tableOf.places.set(rows, (row) => row.direction + row.place);
  }

  function decisions(status) {
    const place = at("decisions"), newestFirst = status.decisions.slice(-20).reverse();
    while (place.children.length > Math.max(1, newestFirst.length)) place.lastChild.remove();
    if (newestFirst.length === 0) newestFirst.push({ line: "Nothing had to be decided so far." });
    newestFirst.forEach((decision, i) => {
      const line = place.children[i] ?? place.appendChild(element("li"));
      if (!line.firstChild) line.append(element("time"), element("span"));
      write(line.firstChild, decision.at_s == null ? "" : words.ago(Math.max(0, status.running_s - decision.at_s)));
      write(line.lastChild, decision.line);
    });
  }

  // --- Pausing ---

  function paused(status) {
    const place = at("paused"), all = status.paused ?? [];
    while (place.children.length > Math.max(1, all.length)) place.lastChild.remove();
    if (all.length === 0) {
      if (place.firstChild?.dataset.key !== "none") place.replaceChildren(element("li", "Nothing is paused."));
      place.firstChild.dataset.key = "none";
    }
    all.forEach((one, i) => {
      const key = `${one.what} ${one.device ?? ""} ${session.controls}`;
      let line = place.children[i];
      if (line?.dataset.key !== key) {
        const made = element("li");
        made.dataset.key = key;
        made.append(element("span"));
        if (session.controls) {
          const button = element("button", "Go on now");
          button.type = "button";
          button.addEventListener("click", () => command({ resume: { what: one.what, ...(one.device == null ? {} : { device: one.device }) } }));
          made.append(button);
        }
        if (line) line.replaceWith(made);
        else place.append(made);
        line = made;
      }
      const whose = one.device == null ? "for all" : `for ${names.get(one.device) ?? one.device}`;
      write(line.firstChild, `${words.PARTS[one.what] ?? one.what} ${whose}, ${one.left_s == null ? "until it is resumed" : `${time(one.left_s)} left`}`);
    });
    if (session.controls) choices(status);
  }

  function choices(status) {
    const select = at("pause-device"), wanted = [["", "all devices"], ...status.devices.map((device) => [device.id, label(device)]).sort(([, a], [, b]) => a.localeCompare(b))];
    const key = JSON.stringify(wanted);
    if (select.dataset.key === key || document.activeElement === select) return;
    const chosen = select.value;
    select.replaceChildren(...wanted.map(([value, text]) => new Option(text, value)));
    if (wanted.some(([value]) => value === chosen)) select.value = chosen;
    select.dataset.key = key;
  }

  at("pause").addEventListener("submit", (event) => {
    event.preventDefault();
    const [device, seconds] = [at("pause-device").value, at("pause-for").value];
    command({ pause: { what: at("pause-what").value, ...(device && { device }), ...(seconds && { for_s: Number(seconds) }) } });
  });

  async function command(request) {
    write(at("command-said"), "");
    try {
      const answer = await fetch("command", { method: "POST", body: JSON.stringify(request) });
      if (answer.status === 401) return start();
      const said = await answer.json();
      write(at("command-said"), said.refused ? `Refused: ${said.refused}` : "Done.");
    } catch (error) {
      write(at("command-said"), "The server does not answer; try again.");
    }
  }

  // --- What is beside the controller ---

  function emulation(log) {
    at("emulation").hidden = !log;
    if (!log) return;
    write(at("emulation-time"), `At second ${log.t_s.toFixed(1)} of the scenario.`);
    write(at("emulation-said"), log.said.map(([t_s, line]) => `${t_s.toFixed(1).padStart(7)} s  ${line}`).join("\n"));
  }

  const measured = new LiveTable("measured", "Medians over the pairs of blocks that count", [
    { head: "", text: (row) => words.MEASURED[row.what] ?? row.what, words: true },
    { head: "control off", text: (row) => figure(row, row.off), number: true },
    { head: "control on", text: (row) => figure(row, row.on), number: true },
    { head: "on / off", text: (row) => row.ratio ? `${row.ratio[0].toFixed(2)} (${row.ratio[1].toFixed(2)} to ${row.ratio[2].toFixed(2)})` : words.NONE, number: true },
  ], { nothing: "The file has no figures that this page knows." });
  const figure = (row, value) => ({ waiting: ms, throughput: rate }[row.what] ?? count)(value);

  async function measurement() {
    const answer = await fetch("measurement").catch(() => null);
    if (answer?.status !== 200) return;
    const found = await answer.json();
    at("measurement").hidden = false;
    const pairs = found.counted == null ? "" : ` ${found.counted} of ${found.planned ?? "?"} pairs of blocks count.`;
    const day = found.started_unix_s == null ? "" : ` Measured on ${new Date(1000 * found.started_unix_s).toLocaleString()}.`;
    write(at("measurement-said"), `${found.sentence ?? words.VERDICTS[found.verdict] ?? "A measurement without a verdict."}${pairs}${day}`);
    at("grades").replaceChildren(...[["off", found.grade_off], ["on", found.grade_on]].filter(([, grade]) => grade).map(([which, grade]) => {
      const made = element("div");
      made.append(element("p", grade, "big"), element("p", `control ${which}`, "quiet"));
      return made;
    }));
    measured.set(found.rows, (row) => row.what);
  }
  setInterval(() => { if (session?.measurement && !document.hidden) measurement(); }, 60000);

  start();
})();
