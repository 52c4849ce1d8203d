# What the ns-2 scripts share: arguments, 802.11 timing, a station's way up, constant-rate flows.

# Arguments are key=value; `defaults` lists every key there is. They land in the global array o.
proc read_arguments {defaults} {
    global argv o
    array set o $defaults
    foreach argument $argv {
        lassign [split $argument =] key value
        if {![info exists o($key)]} { error "no such argument: $key; there are [lsort [array names o]]" }
        set o($key) $value
    }
}

proc elapsed_ms {} { global started; return [expr {[clock clicks -milliseconds] - $started}] }
set started [clock clicks -milliseconds]

# 802.11g among g stations: PLCP 20 us (96 + 24 bits at 6 Mbit/s); the 6 us of signal extension are folded into SIFS.
proc timing_g {control_rate} {
    Mac/802_11 set SlotTime_ 0.000009
    Mac/802_11 set SIFS_ 0.000016
    Mac/802_11 set CWMin_ 15
    Mac/802_11 set CWMax_ 1023
    Mac/802_11 set dataRate_ 54Mb
    Mac/802_11 set basicRate_ $control_rate
    Mac/802_11 set PreambleLength_ 96
    Mac/802_11 set PLCPHeaderLength_ 24
    Mac/802_11 set PLCPDataRate_ 6Mb
}

# 802.11b, long preamble, control frames at 1 Mbit/s.
proc timing_b {} {
    Mac/802_11 set SlotTime_ 0.000020
    Mac/802_11 set SIFS_ 0.000010
    Mac/802_11 set CWMin_ 31
    Mac/802_11 set CWMax_ 1023
    Mac/802_11 set dataRate_ 11Mb
    Mac/802_11 set basicRate_ 1Mb
    Mac/802_11 set PreambleLength_ 144
    Mac/802_11 set PLCPHeaderLength_ 48
    Mac/802_11 set PLCPDataRate_ 1Mb
}

# ns-2 gives a frame up when its retry counter reaches the limit: the limit counts transmissions, not retransmissions.
proc attempts {count} {
    Mac/802_11 set RTSThreshold_ 3000
    Mac/802_11 set ShortRetryLimit_ $count
    Mac/802_11 set LongRetryLimit_ $count
}

proc shadowing {exponent deviation seed} {
    Propagation/Shadowing set pathlossExp_ $exponent
    Propagation/Shadowing set std_db_ $deviation
    Propagation/Shadowing set dist0_ 1.0
    Propagation/Shadowing set seed_ [expr {$seed % 64}]
}

# What every wireless node is made of; `more` are further arguments of node-config.
proc wireless {queue more} {
    global ns topo
    set topo [new Topography]
    $topo load_flatgrid 200 200
    eval $ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue \
        -ifqLen $queue -antType Antenna/OmniAntenna -phyType Phy/WirelessPhy -channel [new Channel/WirelessChannel] \
        -topoInstance $topo -wiredRouting ON -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF $more
}

proc access_point {address} {
    global ns
    set ap [$ns node $address]
    place $ap 100 100
    return $ap
}

proc place {node x y} {
    $node random-motion 0
    $node set X_ $x
    $node set Y_ $y
    $node set Z_ 0
}

# A station on a circle around the access point. Its way up is a second link layer without ARP, always addressed to
# the access point: DumbAgent knows no next hop.
proc station {address ap distance angle} {
    global ns
    set node [$ns node $address]
    place $node [expr {100 + $distance * cos($angle)}] [expr {100 + $distance * sin($angle)}]
    $node base-station [AddrParams addr2id [$ap node-addr]]
    set up [new LL]
    $up mac [$node set mac_(0)]
    $up down-target [$node set ifq_(0)]
    $up set macDA_ [[$ap set mac_(0)] id]
    $up set delay_ 25us
    [$node set ragent_] target $up
    return $node
}

# Wired links are kept out of the trace.
proc wired {a b rate delay buffer} {
    global ns
    set trace [$ns set traceAllFile_]
    $ns set traceAllFile_ ""
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $buffer
    $ns queue-limit $b $a $buffer
    $ns set traceAllFile_ $trace
}

# A UDP agent and a monitor at its other end. A frame larger than `most` bytes is sent in pieces of that size.
proc udp {from to most} {
    global ns
    set agent [new Agent/UDP]
    $agent set packetSize_ $most
    set monitor [new Agent/LossMonitor]
    $ns attach-agent $from $agent
    $ns attach-agent $to $monitor
    $ns connect $agent $monitor
    return [list $agent $monitor]
}

# `size` bytes (of IP) every `interval`, from `start` on; returns the source and the monitor.
proc constant_rate {from to size interval start} {
    global ns
    lassign [udp $from $to 2000] agent monitor
    set source [new Application/Traffic/CBR]
    $source set packetSize_ $size
    $source set interval_ $interval
    $source set random_ 0
    $source attach-agent $agent
    $ns at $start "$source start"
    return [list $source $monitor]
}

# The trace of what agents receive goes through a filter; without a file, nowhere. Wireless nodes insist on a trace file.
proc agent_trace {file filter} {
    global ns here
    if {$file == ""} { set trace [open /dev/null w] } else { set trace [open "|gawk -v out=$file -f $here/$filter" w] }
    $ns trace-all $trace
    return $trace
}

proc packets_and_losses {monitors} {
    set each {}
    foreach monitor $monitors { lappend each [$monitor set npkts_]/[$monitor set nlost_] }
    return [join $each ,]
}

# The number of events so far is the identifier of the next one.
proc events {} { global ns; return [$ns at [expr {[$ns now] + 100}] "#"] }
