# What the init script of OpenWrt uses of /lib/functions.sh, uci and procd, as far as it uses it. It is a stand-in, written by hand. Files of
# UCI are read by the shell itself: `config`, `option` and `list` are their words.

config_load() {
	# shellcheck source=/dev/null
	. "$UCI/$1"
}

config() {
	SECTION="$2"
}

option() {
	eval "CONFIG_${SECTION}_$1=\$2"
}

# As OpenWrt's: items by number, and all of them with spaces between under the option's own name.
list() {
	local length
	config_get length "$SECTION" "$1_LENGTH" 0
	length=$((length + 1))
	eval "CONFIG_${SECTION}_$1_ITEM$length=\$2 CONFIG_${SECTION}_$1_LENGTH=$length"
	eval "CONFIG_${SECTION}_$1=\"\${CONFIG_${SECTION}_$1:+\$CONFIG_${SECTION}_$1 }\$2\""
}

config_get() {
	eval "$1=\"\${CONFIG_$2_$3:-\$4}\""
}

config_get_bool() {
	local said
	config_get said "$2" "$3" "$4"
	case "$said" in
	1 | on | true | yes | enabled) said=1 ;;
	0 | off | false | no | disabled) said=0 ;;
	*) said="$4" ;;
	esac
	eval "$1=$said"
}

config_list_foreach() {
	local length item n=1
	config_get length "$1" "$2_LENGTH" 0
	while [ "$n" -le "$length" ]; do
		config_get item "$1" "$2_ITEM$n"
		"$3" "$item"
		n=$((n + 1))
	done
}

# Each call to procd is a line, its arguments in brackets.
said() {
	local call="$1"
	shift
	[ "$#" -eq 0 ] || call="$call$(printf ' [%s]' "$@")"
	echo "$call"
}

procd_open_instance() { said open "$@"; }
procd_set_param() { said "$@"; }
procd_close_instance() { said close "$@"; }
procd_add_reload_trigger() { said reload_trigger "$@"; }
