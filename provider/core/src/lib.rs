//! Spot pools as data: observed and desired in, a plan out.
