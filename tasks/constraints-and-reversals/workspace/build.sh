mkdir -p var
python - <<'EOF'
import sqlite3
db = sqlite3.connect("var/site-1114.db")
db.executescript(open("schema/ledger.sql").read())
for number in range(1, 38):
    db.execute("INSERT INTO job (payload, state, attempt) VALUES (?, 'done', ?)", (f"order-{number}", 1 + number % 2))
    db.execute("INSERT INTO delivery VALUES (?, 'w1', 1, ?)", (number, 1794000000.0 + number))
db.commit()
EOF
git init -q -b main .
git add . ':!relay_queue/dispatcher.py' ':!tests/test_double_delivery.py' ':!scripts/smoke.py'
git commit -qm 'Threaded pool v3, server, operations notes'
git init -q --bare ../remote.git
git remote add origin ../remote.git
git push -q origin main
git checkout -q -b fix/2147-dispatcher
git add relay_queue tests
git commit -qm '#2147: Hand out jobs from one dispatcher thread'
git add -A
git commit -qm '#2147: Add a smoke script, correct the intake port in the operations page'
