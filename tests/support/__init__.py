"""Launchers of real servers, shared by the tests."""
