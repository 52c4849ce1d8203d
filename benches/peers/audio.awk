# From ns-2's agent trace: arrivals of audio (destination port, sequence number, time) go to `out`; how many segments of
# the download arrived, and how many packets of each kind the interface queues dropped, go to `out`.lost.
BEGIN { printf "" > out }
$1 == "r" && $4 == "AGT" && $7 == "tcp" { arrived++ }
$1 == "r" && $4 == "AGT" && $7 == "cbr" && match($0, /\[[0-9]+:[0-9]+ [0-9]+:([0-9]+) [0-9-]+ [0-9]+\] \[([0-9]+)\] /, found) {
    print found[1], found[2], $2 > out
}
$1 == "D" && $4 == "IFQ" { dropped[$7]++ }
END { print "tcp_arrived=" arrived + 0, "tcp_queue=" dropped["tcp"] + 0, "audio_queue=" dropped["cbr"] + 0 > (out ".lost") }
