CREATE TABLE orders_audit (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL,
    note TEXT NOT NULL
);
