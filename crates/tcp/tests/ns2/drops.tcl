# What an ns-2.35 sender sends when given packets of a link are dropped: one line per run, numbers of segments in the
# order of sending, a comma where time has passed since the one before (half a millisecond or more), and before them the
# time from the first to the last, ms.
#
#   ns drops.tcl Newreno 60 "12"
#
# Arguments: the agent, how many packets, and which are dropped (counted on the link from 0).
# 8 Mbit/s, 50 ms one way, 960 + 40 B (1000 B with Vegas, whose packets have no headers and whose SYN is one of PACKETS); the SYN is segment -1 and not counted; the rest is default: window 2 at first, no delayed ACK, minimum RTO 0.2 s.
source [file join [file dirname [info script]] shown.tcl]
set agent [lindex $argv 0]
set packets [lindex $argv 1]
foreach drops [lrange $argv 2 end] {
  set ns [new Simulator]
  set a [$ns node]; set b [$ns node]
  $ns duplex-link $a $b 8Mb 50ms DropTail
  $ns queue-limit $a $b 1000
  set em [new ErrorModel/List]
  set shifted {}; foreach d $drops {lappend shifted [expr $d + 1]}
  $em droplist $shifted
  $em drop-target [new Agent/Null]
  $ns link-lossmodel $em $a $b
  if {$agent == "Tahoe"} {set tcp [new Agent/TCP]} else {set tcp [new Agent/TCP/$agent]}
  if {$agent == "Sack1"} {set sink [new Agent/TCPSink/Sack1]} else {set sink [new Agent/TCPSink]}
  $tcp set window_ 1000; $tcp set ssthresh_ 1000; $tcp set packetSize_ [expr {$agent == "Vegas" ? 1000 : 960}]
  $ns attach-agent $a $tcp; $ns attach-agent $b $sink; $ns connect $tcp $sink
  set tf [open /tmp/lasthop-ns2-drops.tr w]
  $ns trace-queue $a $b $tf
  set ftp [new Application/FTP]; $ftp attach-agent $tcp
  $ns at 0.0 "$ftp produce $packets"
  $ns at 60 "$ns halt"
  $ns run
  close $tf
  shown $agent $drops /tmp/lasthop-ns2-drops.tr
}
