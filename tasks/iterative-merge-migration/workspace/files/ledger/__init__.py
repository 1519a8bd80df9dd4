"""Keep the ledger that finance reports from."""
