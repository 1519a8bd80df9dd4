ALTER TABLE ledger_entries_v2 RENAME COLUMN amount_minor TO gross_minor;
