"""Which of several ways is the first that suffices, and what a hand-off costs: plain arithmetic on means."""


def enough(values, near=0.0, share=0.0):
    """Of `values` [(name, number)] the names within `near` or within the share `share` of the best, in their order."""
    best = max(number for _, number in values)
    return [name for name, number in values if number >= best - max(near, share * abs(best))]


def time_lost(goodput, whole, every):
    """Time without goodput per hand-off: `every (1 - goodput / whole)`, in the unit of `every`; below 0: there is more."""
    return every * (1.0 - goodput / whole)


def percent_lost(row, flows, place):
    """Of all packets that `flows` sent in one run, how many were lost at `place`, in percent."""
    total = lambda field: sum(row[f"flows.{flow}.{field}"] for flow in flows)
    return 100.0 * total(f"lost.{place}") / total("sent")
