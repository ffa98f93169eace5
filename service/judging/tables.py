"""The judge's tables: what was judged, and what is on its way in the half-price lane."""

from service.storage.tables import judgements, lane_requests, shipments

__all__ = ["judgements", "lane_requests", "shipments"]
