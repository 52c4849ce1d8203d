# How far an ns-2.35 sender comes in a minute over a link that loses packets, with a window of 64: agent, per mille lost, one-way
# delay in ms, first number of the generator; then acknowledged segments, segments sent again, timeouts.
#
#   ns losses.tcl Vegas 10 22 1
#
# 5 Mbit/s, 960 + 40 B (1000 B with Vegas, whose packets have no headers). Packet n on the link, from 0 and without the SYN, is lost where number n of the generator
#   x = (1103515245 x + 12345) mod 2^31
# divided by 65536 is less than the per mille, modulo 1000.
foreach {agent loss delay seed} $argv break
set ns [new Simulator]
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b 5Mb ${delay}ms DropTail
$ns queue-limit $a $b 1000; $ns queue-limit $b $a 1000
set x $seed; set drops {}
for {set n 0} {$n < 40000} {incr n} {
  set x [expr (1103515245 * $x + 12345) % 2147483648]
  if {$x / 65536 % 1000 < $loss} {lappend drops [expr $n + 1]}
}
set em [new ErrorModel/List]; $em droplist $drops; $em drop-target [new Agent/Null]
$ns link-lossmodel $em $a $b
set tcp [new Agent/TCP/$agent]; set sink [new Agent/TCPSink]
$tcp set window_ 64; $tcp set packetSize_ [expr {$agent == "Vegas" ? 1000 : 960}]
$ns attach-agent $a $tcp; $ns attach-agent $b $sink; $ns connect $tcp $sink
set ftp [new Application/FTP]; $ftp attach-agent $tcp
$ns at 0.0 "$ftp start"
$ns at 60 {puts "$agent $loss $delay $seed: [$tcp set ack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_]"; exit 0}
$ns run
