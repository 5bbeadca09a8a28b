//! A recording fake of the Garage admin API and cluster layout.
