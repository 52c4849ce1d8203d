# How far an ns-2.35 sender comes in a minute over a bottleneck with a drop-tail queue: agent, queue, rate in Mbit/s, one-way
# delay in ms, window; then acknowledged segments, segments sent again, timeouts.
#
#   ns bottleneck.tcl Newreno 50 8 50 1000
#
# 960 + 40 B (whose packets have no headers with Vegas: 1000 B); everything else as ns-2 has it by default, the SYN not counted.
foreach {agent queue rate delay window} $argv break
set ns [new Simulator]
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b ${rate}Mb ${delay}ms DropTail
$ns queue-limit $a $b $queue; $ns queue-limit $b $a 100000
if {$agent == "Tahoe"} {set tcp [new Agent/TCP]} else {set tcp [new Agent/TCP/$agent]}
set sink [new Agent/TCPSink]
$tcp set window_ $window; $tcp set packetSize_ [expr {$agent == "Vegas" ? 1000 : 960}]
$ns attach-agent $a $tcp; $ns attach-agent $b $sink; $ns connect $tcp $sink
set ftp [new Application/FTP]; $ftp attach-agent $tcp
$ns at 0.0 "$ftp start"
$ns at 60 {puts "$agent $queue $rate $delay $window: [$tcp set ack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_]"; exit 0}
$ns run
