# Two stations on opposite sides of an access point in ns-2.35, free space, no loss: whether they hear each other follows
# from the carrier-sense threshold (cs, W). Each sends a constant rate beyond what the air carries (traffic=cbr), or has an
# upload (up) or a download (down) of NewReno to or from one server. The work of scenarios/theory/hidden.toml.
# Prints one line of key=value.
#
#   ns ns2_hidden.tcl traffic=cbr near=5 far=5 cs=2.4e-10 rts=3000 seed=1        rts: frames from so many bytes on use it
set here [file dirname [info script]]
source $here/common.tcl
read_arguments {
    traffic cbr near 5 far 5 cs 2.4e-10 rts 3000 pt 2.8183815e-5 R 7 ifq 50 seed 1 t0 1 stop 61 mbps 30
}
timing_g 6Mb
attempts $o(R)
Mac/802_11 set RTSThreshold_ $o(rts)
# Decoded up to 7.25 m, where the way through the air takes 24 ns: our model has none, and with pt=2.8183815e-3 and ten
# times the distances it decides who is heard in the last slot before a CTS.
Phy/WirelessPhy set Pt_ $o(pt)
Phy/WirelessPhy set CSThresh_ $o(cs)
Phy/WirelessPhy set CPThresh_ 10.0
# With no deviation the shadowing model is free space; ns-2's own FreeSpace prints a line per frame.
shadowing 2 0 $o(seed)
ns-random $o(seed)

remove-all-packet-headers
add-packet-header IP TCP RTP ARP LL Mac Message Flags
set ns [new Simulator]
create-god 3
$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {2 1}
AddrParams set nodes_num_ {1 1 3}
set router [$ns node 0.0.0]
set server [$ns node 0.1.0]
set trace [agent_trace "" ""]
wireless $o(ifq) [list -propInstance [new Propagation/Shadowing]]
set AP [access_point 1.0.0]
$ns node-config -wiredRouting OFF
set stations [list [station 1.0.1 $AP $o(near) 0] [station 1.0.2 $AP $o(far) 3.14159265]]
wired $server $router 100Mb 5ms 1000
wired $router $AP 100Mb 5ms 1000

Agent/TCP set tcpTick_ 0.01
proc bulk {from to} {
    global ns o
    set tcp [new Agent/TCP/Newreno]
    $tcp set window_ 1000
    $tcp set packetSize_ 1460
    set sink [new Agent/TCPSink]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at $o(t0) "$ftp start"
    return $tcp
}
set counted {}
foreach node $stations {
    switch $o(traffic) {
        cbr { lappend counted [lindex [constant_rate $node $server 1500 [expr {12e-3 / $o(mbps)}] $o(t0)] 1] }
        up { lappend counted [bulk $node $server] }
        down { lappend counted [bulk $server $node] }
        default { error "traffic is cbr, up or down" }
    }
}

$ns at $o(stop) finish
proc finish {} {
    global ns o counted
    set rates {}
    foreach one $counted {
        set packets [expr {$o(traffic) == "cbr" ? [$one set npkts_] : [$one set ack_] + 1}]
        lappend rates [expr {$packets * 12e-3 / ($o(stop) - $o(t0))}]
    }
    puts "traffic=$o(traffic) near=$o(near) far=$o(far) cs=$o(cs) rts=$o(rts) seed=$o(seed)\
        near_mbps=[lindex $rates 0] far_mbps=[lindex $rates 1] events=[events] wall_ms=[elapsed_ms]"
    exit 0
}
$ns run
