"""The words everybody shares: documents in canonical form and the dialects that read and write them. No I/O."""
