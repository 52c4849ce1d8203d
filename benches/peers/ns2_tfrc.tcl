# One TFRC flow over a link that loses at random, in ns-2.35: what book/src/tcp/tfrc.md compares.
#   source --100 Mbit/s, 20 ms-- a --100 Mbit/s, 1 ms, loses both ways-- d --100 Mbit/s, 1 ms-- sink
# Packets of 1000 bytes, counted from second 20 on.
#   ns ns2_tfrc.tcl per=0.01 seed=1
array set o {per 0.01 seed 1 stop 400}
foreach a $argv { set kv [split $a =]; set o([lindex $kv 0]) [lindex $kv 1] }
ns-random $o(seed)
set ns [new Simulator]
foreach n {s a d k} { set $n [$ns node] }
$ns duplex-link $s $a 100Mb 20ms DropTail
$ns duplex-link $a $d 100Mb 1ms DropTail
$ns duplex-link $d $k 100Mb 1ms DropTail
foreach e [list [list $s $a] [list $a $d] [list $d $a]] { $ns queue-limit [lindex $e 0] [lindex $e 1] 1000 }
set rng [new RNG]
$rng seed [expr $o(seed) * 7 + 1]
foreach e [list [list $a $d] [list $d $a]] {
    set random [new RandomVariable/Uniform]
    $random use-rng $rng
    set losses [new ErrorModel]
    $losses unit pkt
    $losses set rate_ $o(per)
    $losses ranvar $random
    $losses drop-target [new Agent/Null]
    $ns lossmodel $losses [lindex $e 0] [lindex $e 1]
}
set t [new Agent/TFRC]
set sink [new Agent/TFRCSink]
$t set packetSize_ 1000
$ns attach-agent $s $t
$ns attach-agent $k $sink
$ns connect $t $sink
set f [new Application/FTP]
$f attach-agent $t
$ns at 0.0 "$f start"
$ns at 20.0 { set sent [$t set ndatapack_] }
$ns at $o(stop) {
    set sent [expr [$t set ndatapack_] - $sent]
    puts "per=$o(per) seed=$o(seed) sent=$sent mbps=[expr $sent * 8000.0 / ($o(stop) - 20) / 1e6]"
    exit 0
}
$ns run
