"""The engines: one folder each, with the same room names. No engine imports another."""
