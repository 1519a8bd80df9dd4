CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    total REAL NOT NULL,
    currency TEXT NOT NULL
);
