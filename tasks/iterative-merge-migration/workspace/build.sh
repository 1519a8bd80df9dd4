git init -q -b main .
git add -A
git commit -qm 'LEDG-318: minor units'
git init -q --bare ../remote.git
git remote add origin ../remote.git
git push -q origin main
git checkout -q -b ledg-318-minor-units
git push -q -u origin ledg-318-minor-units
python - <<'EOF'
from ledger import migrate
from ledger.db import connect
from ledger.backfill import backfill

conn = connect("var/rehearsal.db")
migrate.apply(conn)
for number in range(1, 61):
    currency = "JPY" if number % 12 == 0 else "USD" if number % 5 == 0 else "EUR"
    conn.execute("INSERT INTO orders VALUES (?, ?, ?)", (number, number * 7.25, currency))
    if number == 40:
        backfill(conn, 100, 0, ["JPY"])
conn.execute("INSERT INTO orders_audit (order_id, note) VALUES (3, 'corrected by till 4')")
conn.close()
EOF
