//! When each flow sends packets of which size (MODELS.md section 6).

pub mod trace;
