//! The EC2 API behind a narrow port.
