# The SAP-LAW home (Palazzi et al., ACE 2006, tables 1 to 3) in ns-2.35: 180 s, a download in the last 45.
# Prints one line of key=value; acked is the count at the end of the 180 s. arrivals=FILE also writes when each packet of the game reached its station.
#
#   ns ns2_home.tcl R=4 ifq=50 dist=10 std=9 seed=1 frames=DIR        R: transmissions of a frame in all
#   ns ns2_home.tcl R=4 ifq=50 saplaw=1 C=18 seed=1 frames=DIR        DIR: where traces.py wrote
set here [file dirname [info script]]
source $here/common.tcl
read_arguments {
    R 4 ifq 50 dist 10 std 9 ple 4 seed 1 saplaw 0 C 18 rtt 0.0815 alpha 0.2 stop 180 ftpstart 135 wmax 1000 pkt 1460
    tcp Newreno delack 0 frames out arrivals ""
}
timing_g 6Mb
attempts $o(R)
shadowing $o(ple) $o(std) $o(seed)
ns-random $o(seed)

set ns [new Simulator]
create-god 6
$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {4 1}
AddrParams set nodes_num_ {1 1 1 1 6}
for {set i 0} {$i < 4} {incr i} { set W($i) [$ns node 0.$i.0] }
set trace [agent_trace $o(arrivals) game.awk]
wireless $o(ifq) [list -propInstance [new Propagation/Shadowing] -agentTrace [expr {$o(arrivals) == "" ? "OFF" : "ON"}]]
set AP [access_point 1.0.0]
$ns node-config -wiredRouting OFF
for {set i 0} {$i < 4} {incr i} { set N($i) [station 1.0.[expr {$i + 1}] $AP $o(dist) [expr {3.14159265 / 2 * $i}]] }
foreach {i delay} {1 10ms 2 20ms 3 30ms} { wired $W($i) $W(0) 100Mb $delay 140 }
wired $W(0) $AP 100Mb 10ms 140

set monitors {}
proc frames {from to file start} {
    global ns monitors o
    lassign [udp $from $to 1472] agent monitor
    set trace [new Tracefile]
    $trace filename $o(frames)/$file
    set source [new Application/Traffic/Trace]
    $source attach-tracefile $trace
    $source attach-agent $agent
    $ns at $start "$source start"
    $ns at $o(stop) "$source stop"
    lappend monitors $monitor
}
proc game {from to size interval start} {
    global ns monitors o
    lassign [constant_rate $from $to $size $interval $start] source monitor
    $ns at $o(stop) "$source stop"
    lappend monitors $monitor
}
frames $AP $N(0) video.bin 0.01
game $W(1) $N(1) 200 0.05 45
game $N(1) $W(1) 42 0.06 46
frames $W(2) $N(2) chat.bin 90
frames $N(2) $W(2) chat.bin 91

Agent/TCP set tcpTick_ 0.01
set tcp [new Agent/TCP/$o(tcp)]
$tcp set window_ $o(wmax)
$tcp set packetSize_ $o(pkt)
set sink [expr {$o(delack) ? [new Agent/TCPSink/DelAck] : [new Agent/TCPSink]}]
$ns attach-agent $W(3) $tcp
$ns attach-agent $N(3) $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at $o(ftpstart) "$ftp start"
$ns at $o(stop) "$ftp stop"
$ns at $o(stop) { set acked [expr {[$tcp set ack_] + 1}] }

set cwnd_max 0
set cwnd_sum 0
set cwnd_samples 0
proc sample {} {
    global ns tcp cwnd_max cwnd_sum cwnd_samples
    set cwnd [$tcp set cwnd_]
    if {$cwnd > $cwnd_max} { set cwnd_max $cwnd }
    set cwnd_sum [expr {$cwnd_sum + $cwnd}]
    incr cwnd_samples
    $ns at [expr {[$ns now] + 0.01}] sample
}
$ns at [expr {$o(ftpstart) + 0.01}] sample

# SAP-LAW, eq. (1) every 200 ms: window = (C - UDP) x RTT. UDP is what all its flows delivered, smoothed.
set udp_rate 0
set udp_bytes 0
proc saplaw {} {
    global ns tcp monitors udp_rate udp_bytes o
    set bytes 0
    foreach monitor $monitors { set bytes [expr {$bytes + [$monitor set bytes_]}] }
    set udp_rate [expr {(1 - $o(alpha)) * $udp_rate + $o(alpha) * ($bytes - $udp_bytes) * 8 / 0.2}]
    set udp_bytes $bytes
    set window [expr {($o(C) * 1e6 - $udp_rate) * $o(rtt) / 8.0 / ($o(pkt) + 40)}]
    $tcp set window_ [expr {$window < 1 ? 1 : int($window)}]
    $ns at [expr {[$ns now] + 0.2}] saplaw
}
if {$o(saplaw)} { $ns at 0.2 saplaw }

$ns at [expr {$o(stop) + 0.5}] finish
proc finish {} {
    global ns o tcp trace cwnd_max cwnd_sum cwnd_samples udp_rate monitors acked
    puts "R=$o(R) ifq=$o(ifq) dist=$o(dist) std=$o(std) seed=$o(seed) saplaw=$o(saplaw) C=$o(C)\
        acked=$acked sent=[$tcp set ndatapack_] rexmit=[$tcp set nrexmitpack_]\
        rto=[$tcp set nrexmit_] cwmax=$cwnd_max cwavg=[expr {$cwnd_sum / $cwnd_samples}] win=[$tcp set window_]\
        udp_recv/lost=[packets_and_losses $monitors] udp_rate=$udp_rate events=[events] wall_ms=[elapsed_ms]"
    flush stdout
    $ns flush-trace
    close $trace
    exit 0
}
$ns run
