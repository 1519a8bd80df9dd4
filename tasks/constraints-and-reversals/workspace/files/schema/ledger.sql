CREATE TABLE IF NOT EXISTS job (
    id INTEGER PRIMARY KEY,
    payload TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'ready',
    owner TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    lease_until REAL
);
CREATE TABLE IF NOT EXISTS delivery (
    job_id INTEGER NOT NULL REFERENCES job (id),
    owner TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at REAL NOT NULL
);
