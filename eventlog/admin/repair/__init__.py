"""Repair of a damaged event stream: find the damage, find whole copies of the lost commits, rewrite the stream."""
