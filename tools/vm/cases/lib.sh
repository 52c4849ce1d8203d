# What several cases share. Sourced; `set -euo pipefail` is on.

# figure NAME VALUE: something measured, for the table of tools/vm/table.py.
figure() {
    printf 'FIGURE %s %s\n' "$1" "$2"
}

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

# A WPA2 access point `wlan0` here, 10.9.0.1, and a station `wlan0` in the namespace `station`, 10.9.0.2. Lines of $hostapd_lines go
# into hostapd's file.
wifi_up() {
    settle
    modprobe -a ccm ctr cmac   # hostapd asks the kernel for them by a way that does not load modules
    modprobe -r mac80211_hwsim 2>/dev/null || true
    modprobe mac80211_hwsim radios=2
    ip netns add station
    ip netns exec station bash -c "$(declare -f settle); settle"
    # Radios appear in the first namespace, whichever one the case runs in.
    nsenter --net=/proc/1/ns/net bash -c '
        iw phy phy"$(basename "$(realpath /sys/class/net/wlan0/phy80211)" | tr -dc 0-9)" set netns '"$$"'
        iw phy phy"$(basename "$(realpath /sys/class/net/wlan1/phy80211)" | tr -dc 0-9)" set netns name station'
    ip -n station link set wlan1 name wlan0
    cat >/tmp/hostapd.conf <<'END'
interface=wlan0
driver=nl80211
ssid=lasthop
hw_mode=g
channel=6
supported_rates=60 120 240 360 480 540
basic_rates=60
wpa=2
wpa_key_mgmt=WPA-PSK
rsn_pairwise=CCMP
wpa_passphrase=lasthop-test
END
    printf '%s\n' "${hostapd_lines:-}" >>/tmp/hostapd.conf
    printf 'network={\n ssid="lasthop"\n psk="lasthop-test"\n}\n' >/tmp/wpa_supplicant.conf
    hostapd /tmp/hostapd.conf >/tmp/hostapd.log 2>&1 &
    ip netns exec station wpa_supplicant -i wlan0 -c /tmp/wpa_supplicant.conf >/tmp/wpa_supplicant.log 2>&1 &
    ip addr add 10.9.0.1/24 dev wlan0
    ip -n station addr add 10.9.0.2/24 dev wlan0
    ip -n station link set lo up
    until_true 60 grep -q 'CTRL-EVENT-CONNECTED' /tmp/wpa_supplicant.log || { cat /tmp/hostapd.log /tmp/wpa_supplicant.log; return 1; }
}

# until_true SECONDS COMMAND..: waits for it to succeed.
until_true() {
    local last=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$last" ] || { echo "not within the time given: $*"; return 1; }
        sleep 0.2
    done
}

# Sets this network namespace as schema/namespace.conf has it; the congestion control is the kernel's own, which is known here.
settle() {
    local file value name
    while IFS='= ' read -r file value; do
        for name in all default lo; do
            [ ! -e "/proc/sys/${file/\*/$name}" ] || echo "$value" >"/proc/sys/${file/\*/$name}"
        done
    done < <(grep '^net/' "$CASES/../../../schema/namespace.conf")
}

# A server (namespace `server`, 10.8.1.2), this namespace as the access point, a station (`station`, 10.8.2.2) behind
# `lan0`. Nothing is merged anywhere, so that every queue sees packets and not bundles of them.
home_up() {
    settle
    ip link set lo up
    for side in server:wan0:10.8.1 station:lan0:10.8.2; do
        IFS=: read -r name device net <<<"$side"
        ip netns add "$name"
        ip link add "$device" type veth peer name eth0 netns "$name"
        ip addr add "$net.1/24" dev "$device"
        ip link set "$device" up
        ip netns exec "$name" bash -c "$(declare -f settle); settle"
        ip -n "$name" link set lo up
        ip -n "$name" addr add "$net.2/24" dev eth0
        ip -n "$name" link set eth0 up
        ip -n "$name" route add default via "$net.1"
        ethtool -K "$device" tso off gso off gro off >/dev/null
        ip netns exec "$name" ethtool -K eth0 tso off gso off gro off >/dev/null
    done
    echo 1 >/proc/sys/net/ipv4/ip_forward
}

# lasthop_up ARGUMENT..: a controller in the background, its number in $controller, ready.
lasthop_up() {
    rm -f /tmp/lasthop.sock
    "$LASTHOP" run --socket /tmp/lasthop.sock "$@" >/tmp/lasthop.log 2>&1 &
    controller=$!
    if ! until_true 60 lasthop_answers >/dev/null || ! [ -S /tmp/lasthop.sock ]; then
        cat /tmp/lasthop.log
        return 1
    fi
}

# It answers, or it has ended and never will.
lasthop_answers() {
    "$LASTHOP" status --socket /tmp/lasthop.sock >/dev/null 2>&1 || ! kill -0 "$controller" 2>/dev/null
}

# lasthop_down SIGNAL: ends it and waits.
lasthop_down() {
    kill "-$1" "$controller"
    wait "$controller" 2>/dev/null || true
}

# status_is EXPRESSION: holds of the running controller's status `s` and its first queue `q`.
status_is() {
    "$LASTHOP" status --json --socket /tmp/lasthop.sock >/tmp/status.json
    python3 - "$1" <<'END'
import json, sys
s = json.load(open("/tmp/status.json"))
q = s.get("queues", [None])[0]
if not eval(sys.argv[1]):
    sys.exit(f"not so: {sys.argv[1]}\n{json.dumps(q, indent=1)}\n{open('/tmp/lasthop.log').read()}")
END
}

# game SECONDS FILE [LATE]: a game's packets from the server to the station in the background.
# shellcheck disable=SC2034 # who calls it waits for game_receiver and game_sender
game() {
    ip netns exec station python3 "$CASES/probe.py" receive "$1" "$2" &
    game_receiver=$!
    sleep 1
    ip netns exec server python3 "$CASES/probe.py" send 10.8.2.2 "$1" ${3:+"$3"} &
    game_sender=$!
}

# download SECONDS [BEFORE]: from the server to the station; prints bits per second, those of the seconds before not counted.
download() {
    ip netns exec server iperf3 -s -1 >/dev/null 2>&1 &
    until_true 20 sh -c "ip netns exec server ss -tln | grep -q :5201"
    ip netns exec station iperf3 -c 10.8.1.2 -R -t "$1" -O "${2:-0}" --json >/tmp/iperf.json || { cat /tmp/iperf.json >&2; return 1; }
    python3 -c 'import json; print(int(json.load(open("/tmp/iperf.json"))["end"]["sum_received"]["bits_per_second"]))'
}

root_qdisc() {
    tc qdisc show dev "$1" root
}
