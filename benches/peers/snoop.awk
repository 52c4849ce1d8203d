# Arrivals at the sinks of ns2_snoop.tcl, counted from `from` on: data that had not come before, data that had, and those of
# the first that came at most 75 ms after the one before. `packets`: what senders sent that came, be it as Snoop's copy: a copy
# keeps its packet's id. Fields of a line: event time from to type size flags flow source destination number id.
$1 == "r" && $5 != "ack" && $2 >= from {
    flow = $8
    if (!came[$12]++) packets++
    if (seen[flow, $11]++) { duplicates++; next }
    delivered++
    if (flow in last && $2 - last[flow] <= 0.075) timely++
    last[flow] = $2
}
END { printf "delivered=%d duplicates=%d packets=%d timely=%d\n", delivered, duplicates, packets, timely > out }
