"""How fast and how expensive the fleet may be: the limiter and the budgets, shared by all workers."""
