CREATE TABLE ledger_entries_v2 (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL,
    amount_minor INTEGER NOT NULL,
    currency TEXT NOT NULL,
    source TEXT NOT NULL,
    seal TEXT
);
CREATE INDEX ix_entries_order ON ledger_entries_v2 (order_id);
