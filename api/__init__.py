"""The API under /v1: teams submit, watch and fetch. A route translates, calls one function and answers."""
