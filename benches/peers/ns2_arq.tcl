# The home of the ARQ paper (802.11b, figure 3.1) in ns-2.35: a download for 100 s, audio joins after 50 s.
# Prints one line of key=value. arrivals=FILE also writes when each audio packet reached the station; FILE.lost gets
# what arrived and was dropped of the download. TCP in per cent is payload over 11 Mbit/s.
#
#   ns ns2_arq.tcl R=3 nudp=1 std=7.5 tcp=Newreno seed=1 arrivals=FILE     R: transmissions of a frame in all
#   ns ns2_arq.tcl R=4 std=4 rts=0                                         RTS before every frame, ns-2's default
set here [file dirname [info script]]
source $here/common.tcl
read_arguments { R 4 nudp 1 tcp Newreno seed 1 std 7.5 ple 2.0 dist 10 ifq 50 stop 100 pt 0.001 wmax 1000 rts 3000 arrivals "" }
timing_b
attempts $o(R)
Mac/802_11 set RTSThreshold_ $o(rts)
Phy/WirelessPhy set Pt_ $o(pt)
shadowing $o(ple) $o(std) $o(seed)
ns-random $o(seed)

set ns [new Simulator]
create-god 2
$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {3 1}
AddrParams set nodes_num_ {1 1 1 2}
set router [$ns node 0.0.0]
set server [$ns node 0.1.0]
set caller [$ns node 0.2.0]
set trace [agent_trace $o(arrivals) audio.awk]
wireless $o(ifq) [list -propInstance [new Propagation/Shadowing] -agentTrace [expr {$o(arrivals) == "" ? "OFF" : "ON"}]]
set AP [access_point 1.0.0]
$ns node-config -wiredRouting OFF
set N [station 1.0.1 $AP $o(dist) 0]
wired $server $router 20Mb 1ms 1000
wired $caller $router 5Mb 1ms 1000
wired $router $AP 100Mb 70ms 1000

Agent/TCP set tcpTick_ 0.01
if {$o(tcp) == "westwood"} {
    set tcp [new Agent/TCP/Linux]
    $ns at 0 "$tcp select_ca westwood"
    set sink [new Agent/TCPSink/Sack1]
} else {
    set tcp [new Agent/TCP/$o(tcp)]
    set sink [new Agent/TCPSink]
}
$tcp set window_ $o(wmax)
$tcp set packetSize_ 1000
$ns attach-agent $server $tcp
$ns attach-agent $N $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0.0 "$ftp start"
$ns at $o(stop) "$ftp stop"

set monitors {}
for {set i 0} {$i < $o(nudp)} {incr i} {
    lassign [constant_rate $caller $N 100 0.02 [expr {50.0 + 0.004 * $i}]] source monitor
    $ns at $o(stop) "$source stop"
    lappend monitors $monitor
}

set acked_50 0
set acked 0
$ns at 50 { set acked_50 [$tcp set ack_] }
$ns at $o(stop) { set acked [$tcp set ack_] }
$ns at [expr {$o(stop) + 2.0}] finish
proc finish {} {
    global ns o tcp trace acked acked_50 monitors
    set percent [expr {8000.0 / 11e6 * 100}]
    puts "R=$o(R) nudp=$o(nudp) tcp=$o(tcp) std=$o(std) seed=$o(seed) acked=$acked\
        tcp_percent=[expr {$acked * $percent / $o(stop)}] tcp_percent_alone=[expr {$acked_50 * $percent / 50}]\
        tcp_percent_beside=[expr {($acked - $acked_50) * $percent / ($o(stop) - 50)}]\
        sent=[$tcp set ndatapack_] rexmit=[$tcp set nrexmitpack_] rto=[$tcp set nrexmit_]\
        udp_recv/lost=[packets_and_losses $monitors] wall_ms=[elapsed_ms]"
    flush stdout
    $ns flush-trace
    close $trace
    exit 0
}
$ns run
