"""Rewrites of a written query before it is bound: one file a rule, applied in the order of `order.RULES`."""
