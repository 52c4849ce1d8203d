//! What a home is: the scenario, its traffic, its report.
