# Arrivals of the game at its station, from ns-2's agent trace: sequence number and time.
# The game is the only flow of packets of 200 bytes; W1 numbers them from 0.
BEGIN { printf "" > out }
$1 == "r" && $4 == "AGT" && $7 == "cbr" && $8 == 200 && match($0, /\] \[([0-9]+)\] /, found) { print found[1], $2 > out }
