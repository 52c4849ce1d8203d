# A cell of n stations in ns-2.35: each has one NewReno download (1460 + 40 B) and one game (200 B every 50 ms down,
# 42 B every 60 ms up), no losses on the air. Prints one line of key=value.
#
#   ns ns2_cell.tcl n=16 stop=100
set here [file dirname [info script]]
source $here/common.tcl
read_arguments { n 4 stop 100 seed 1 R 7 ifq 100 ack 24Mb t0 1 }
timing_g $o(ack)
attempts $o(R)
ns-random $o(seed)

# Only the headers that are used: ns-2 at its fastest.
remove-all-packet-headers
add-packet-header IP TCP RTP ARP LL Mac Message Flags
set ns [new Simulator]
create-god [expr {$o(n) + 1}]
$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {2 1}
AddrParams set nodes_num_ [list 1 1 [expr {$o(n) + 1}]]
set router [$ns node 0.0.0]
set server [$ns node 0.1.0]
set trace [agent_trace "" ""]
wireless $o(ifq) {-propType Propagation/TwoRayGround}
set AP [access_point 1.0.0]
$ns node-config -wiredRouting OFF
wired $server $router 100Mb 30ms 140
wired $router $AP 100Mb 10ms 140

Agent/TCP set tcpTick_ 0.01
for {set i 0} {$i < $o(n)} {incr i} {
    set node [station 1.0.[expr {$i + 1}] $AP 10 [expr {6.2831853 * $i / $o(n)}]]
    set tcp($i) [new Agent/TCP/Newreno]
    $tcp($i) set window_ 1000
    $tcp($i) set packetSize_ 1460
    set sink [new Agent/TCPSink]
    $ns attach-agent $server $tcp($i)
    $ns attach-agent $node $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [expr {$o(t0) + 0.01 * $i}] "$ftp start"
    constant_rate $server $node 200 0.05 [expr {0.5 + 0.001 * $i}]
    constant_rate $node $server 42 0.06 [expr {0.6 + 0.001 * $i}]
}

$ns at $o(stop) finish
proc finish {} {
    global ns o tcp
    set sum 0
    set squares 0
    for {set i 0} {$i < $o(n)} {incr i} {
        set packets [expr {[$tcp($i) set ack_] + 1}]
        set sum [expr {$sum + $packets}]
        set squares [expr {$squares + 1.0 * $packets * $packets}]
    }
    puts "n=$o(n) stop=$o(stop) seed=$o(seed) R=$o(R) acked=$sum\
        rate_mbps=[expr {$sum * 12000.0 / ($o(stop) - $o(t0)) / 1e6}] jain=[expr {1.0 * $sum * $sum / ($squares * $o(n))}]\
        events=[events] wall_ms=[elapsed_ms]"
    exit 0
}
$ns run
