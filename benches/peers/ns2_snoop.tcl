# The Snoop paper's network (figure 2) in ns-2.35: N sources, a base station, a lossy link of 5 Mbit/s, N sinks. The base
# station and the head of the link are two nodes with a fast LAN between them, as in ns-2's own test of Snoop: its agent is
# a link layer of LANs. Prints one line of key=value; what is counted begins at `from`.
#
#   ns ns2_snoop.tcl N=10 tcp=Reno snoop=1 per=0.01 seed=1 arrivals=FILE     tcp: an agent's name, or westwood (Linux's, SACK)
#   ns ns2_snoop.tcl N=10 source=mpeg frames=DIR                            DIR: what traces.py wrote
#   ns ns2_snoop.tcl N=40 delay=100 queue=128                               sources 100 ms away, the link's buffer to match
#   ns ns2_snoop.tcl N=40 delay=1 hop=20 snoop=1                            the link itself long
set here [file dirname [info script]]
source $here/common.tcl
read_arguments { N 10 tcp Reno snoop 0 source ftp per 0.01 seed 1 from 2 stop 60 delay 20 hop 1 timer 0.1 queue 28 frames frames arrivals "" }
ns-random $o(seed)
set streams [new RNG]
$streams seed $o(seed)
Queue/DropTail set limit_ $o(queue)
Agent/TCP set window_ 64
Agent/TCP set packetSize_ 960
Agent/TCP set tcpTick_ 0.01
# What Snoop takes the hop for before it has measured it, and its least local timer.
Snoop set srtt_ 0.1
Snoop set snoopTick_ $o(timer)
LL/LLSnoop set integrate_ 0

set ns [new Simulator]
set base [$ns node]
set head [$ns node]
set far [$ns node]
if {$o(arrivals) == ""} { set trace [open /dev/null w] } else {
    set trace [open "|gawk -v from=$o(from) -v out=$o(arrivals) -f $here/snoop.awk" w]
}
set lan [$ns make-lan [list $head] 100Mb 0.01ms LL Queue/DropTail Mac/802_3]
$lan addNode [list $base] 100Mb 0.01ms [expr {$o(snoop) ? "LL/LLSnoop" : "LL"}] Queue/DropTail Mac/802_3
$ns duplex-link $head $far 5Mb $o(hop)ms DropTail
$ns queue-limit $head $far $o(queue)
$ns queue-limit $far $head $o(queue)

# Packets are lost before the link's queue. Those to the sinks pass a counter on their way to nowhere.
set lost [new QueueMonitor]
set gate [new SnoopQueue/In]
$gate set-monitor $lost
$gate target [new Agent/Null]
foreach {a b} [list $head $far $far $head] {
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $o(per)
    $errors ranvar [new RandomVariable/Uniform]
    if {$a == $head} { $errors drop-target $gate } else { $errors drop-target [new Agent/Null] }
    $ns lossmodel $errors $a $b
}
set queue [$ns monitor-queue $head $far ""]
# All that the base station put on the link, its own retransmissions included.
proc carried {} { global lost queue; return [expr {[$lost set parrivals_] + [$queue set parrivals_]}] }

# `wired` of common.tcl is for a simulation that traces every link.
proc wire {a b delay} {
    global ns
    $ns duplex-link $a $b 10Mb $delay DropTail
    $ns queue-limit $a $b 1000
    $ns queue-limit $b $a 1000
}
set draw [new RNG]
$draw seed $o(seed)
for {set i 0} {$i < $o(N)} {incr i} {
    set from($i) [$ns node]
    set to($i) [$ns node]
    wire $from($i) $base $o(delay)ms
    wire $far $to($i) 1ms
    $ns trace-queue $far $to($i) $trace
    if {$o(tcp) == "westwood"} {
        set tcp($i) [new Agent/TCP/Linux]
        $ns at 0 "$tcp($i) select_ca westwood"
        set sink [new Agent/TCPSink/Sack1]
    } else {
        set tcp($i) [new Agent/TCP/$o(tcp)]
        set sink [new Agent/TCPSink]
    }
    $tcp($i) set fid_ $i
    $ns attach-agent $from($i) $tcp($i)
    $ns attach-agent $to($i) $sink
    $ns connect $tcp($i) $sink
    set start [$draw uniform 0 1.0]
    if {$o(source) == "ftp"} { set source [new Application/FTP] } else {
        if {![info exists frames]} {
            set frames [new Tracefile]
            $frames filename $o(frames)/video.bin
        }
        set source [new Application/Traffic/Trace]
        $source attach-tracefile $frames
    }
    $source attach-agent $tcp($i)
    $ns at $start "$source start"
    $ns at $o(stop) "$source stop"
}

set counters {ack_ ndatapack_ nrexmitpack_ nrexmit_}
$ns at $o(from) {
    set carried_before [carried]
    for {set i 0} {$i < $o(N)} {incr i} { foreach counter $counters { set before($i,$counter) [$tcp($i) set $counter] } }
}
$ns at $o(stop) finish
proc finish {} {
    global ns o tcp before counters carried_before trace
    foreach counter $counters { set sum($counter) 0 }
    set squares 0
    for {set i 0} {$i < $o(N)} {incr i} {
        foreach counter $counters {
            set grown [expr {[$tcp($i) set $counter] - $before($i,$counter)}]
            incr sum($counter) $grown
            if {$counter == "ack_"} { set squares [expr {$squares + double($grown) * $grown}] }
        }
    }
    set acked $sum(ack_)
    puts "N=$o(N) tcp=$o(tcp) snoop=$o(snoop) source=$o(source) per=$o(per) seed=$o(seed)\
        goodput_mbps=[expr {$acked * 7680e-6 / ($o(stop) - $o(from))}]\
        jain=[expr {$squares > 0 ? double($acked) * $acked / ($o(N) * $squares) : 1.0}]\
        acked=$acked sent=$sum(ndatapack_) retransmitted=$sum(nrexmitpack_) timeouts=$sum(nrexmit_)\
        link_retransmitted=[expr {[carried] - $carried_before - $sum(ndatapack_)}] wall_ms=[elapsed_ms]"
    flush stdout
    $ns flush-trace
    close $trace
    exit 0
}
$ns run
