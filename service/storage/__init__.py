"""Where everything is kept: tables, the store (the only SQL), migrations, artifacts."""
