# What several cases share. Sourced; `set -euo pipefail` is on.

# A WPA2 access point `wlan0` here, 10.9.0.1, and a station `wlan0` in the namespace `station`, 10.9.0.2.
wifi_up() {
    modprobe -a ccm ctr cmac   # hostapd asks the kernel for them by a way that does not load modules
    modprobe -r mac80211_hwsim 2>/dev/null || true
    modprobe mac80211_hwsim radios=2
    ip netns add station
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
wpa=2
wpa_key_mgmt=WPA-PSK
rsn_pairwise=CCMP
wpa_passphrase=lasthop-test
END
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
