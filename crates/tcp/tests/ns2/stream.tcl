# What an ns-2.35 sender sends when its application gives it few packets at a time, and given packets are dropped: written
# as by drops.tcl.
#
#   ns stream.tcl Reno "30 31"
#
# One packet at 0 s; from 0.313 s on, every 40 ms, frames of one and of two in turns, every seventh of five, to 101 in all.
# 5 Mbit/s, 50 ms one way, 960 + 40 B, window 64.
source [file join [file dirname [info script]] shown.tcl]
set agent [lindex $argv 0]
set drops [lindex $argv 1]
set ns [new Simulator]
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b 5Mb 50ms DropTail
$ns queue-limit $a $b 1000
set em [new ErrorModel/List]
set shifted {}; foreach d $drops {lappend shifted [expr $d + 1]}
$em droplist $shifted
$em drop-target [new Agent/Null]
$ns link-lossmodel $em $a $b
if {$agent == "Tahoe"} {set tcp [new Agent/TCP]} else {set tcp [new Agent/TCP/$agent]}
set sink [new Agent/TCPSink]
$tcp set window_ 64; $tcp set packetSize_ 960
$ns attach-agent $a $tcp; $ns attach-agent $b $sink; $ns connect $tcp $sink
set tf [open /tmp/lasthop-ns2-stream.tr w]
$ns trace-queue $a $b $tf
$ns at 0.0 "$tcp advanceby 1"
set given 0
for {set i 0} {$given < 100} {incr i} {
  set n [expr {$i % 7 == 6 ? 5 : 1 + $i % 2}]
  $ns at [expr 0.313 + 0.04 * $i] "$tcp advanceby $n"
  incr given $n
}
$ns at 60 "$ns halt"
$ns run
close $tf
shown $agent $drops /tmp/lasthop-ns2-stream.tr
