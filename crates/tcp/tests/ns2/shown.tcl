# What the two scripts here write down of a trace: numbers of segments in the order of sending, a comma where half a millisecond
# or more has passed since the one before; and the time from the first to the last, ms.
proc shown {agent drops file} {
  set line ""; set last -1; set first -1
  set tf [open $file]
  while {[gets $tf l] >= 0} {
    if {[lindex $l 0] == "+" && [lindex $l 4] == "tcp" && [lindex $l 10] > 0} {
      set t [lindex $l 1]
      if {$first < 0} {set first $t}
      if {$last >= 0 && $t - $last > 0.0005} {append line ","}
      append line " [expr [lindex $l 10] - 1]"; set last $t
    }
  }
  close $tf
  puts "$agent {$drops} [format %.0f [expr ($last - $first) * 1000]]:$line"
}
