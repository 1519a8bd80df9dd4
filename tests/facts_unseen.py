"""Hard cases of fact matching that were measured before any rule was changed for them, in five lists of fifty.

Value, kind (None: guessed), text, whether the text states the value. The first three lists were written before reading
the rules or the older cases; with the rules of that time each of them came to 46. Each list was then measured once with
the rules that the lists before it had led to: 46, 48, 47. The fourth and fifth were written with the rules known: 49
and 50 (41 and 36 with the rules from before the first). Two expectations changed since: "10k" may be rounded and is not
10000; "31 out of 40" is "31 of 40".
"""

from __future__ import annotations

from eval_core.domain.probe import FactKind

NB, NN, SH = "\u00a0", "\u202f", "\u00ad"
K, L = True, False
Case = tuple[str, FactKind | None, str, bool]

FIRST: tuple[Case, ...] = (
    # numbers
    ("32", "number", "the column is an int32 now", L),
    ("128", "number", "encrypted with AES-128-GCM", L),
    ("404", "number", "4041 rows, 40404 bytes", L),
    ("5432", "number", "listens on db.internal:5432/relay", K),
    ("250", "number", "p95 went from 250ms to 90ms", K),
    ("90%", None, "coverage is at 90 percent", K),
    ("90%", None, "waited 90 seconds", L),
    ("12", "number", "released on 2024-12-03", L),
    ("30", "number", "runs at 14:30 every day", L),
    ("-5", "number", "an offset of 5 rows", L),
    ("5", "number", "returned -5 from the syscall", L),
    ("12000", "number", f"12{NB}000 rows were copied", K),
    ("1234567", "number", "1.234.567 Zeilen importiert", K),
    ("3 retries", None, "it gives up after three retries", K),
    ("2.5", "number", "took 12.5 s in total", L),
    ("1.5", "number", "upgraded the client to 1.5.2", L),
    ("512 MB", None, "the limit is 512MB", K),
    ("512 MB", None, "the limit is 512 GB", L),
    # versions
    ("1.2.0", "version", "Pinned to v1.2.0.", K),
    ("1.2", "version", "requires `lib>=1.2,<2`", K),
    ("3.11", "version", "the image has python3.11", K),
    ("3.1", "version", "the image has Python 3.11", L),
    ("2.0.0", "version", "tagged 2.0.0-beta.3", L),
    # hashes
    ("e4d90b7", "hash", "commit E4D90B7C31 landed", K),
    ("e4d90b7c31aa", "hash", "see e4d90b7… on main", K),
    ("e4d90b7", "hash", "see e4d90b on main", L),
    ("e4d90b7", "hash", "image digest 77e4d90b7c", L),
    # paths
    ("src/app.py", "path", "edited src/{app,main}.py", K),
    ("src/app.py", "path", "stubs are in src/app.pyi", L),
    ("src/app.py", "path", "/home/u/repo/src/app.py:88:4: E501 line too long", K),
    ("src/app.py", "path", "C:\\repo\\src\\app.py was locked", K),
    ("src/app.py", "path", "https://github.com/o/r/blob/main/src/app.py#L3", K),
    ("src/app.py", "path", "see tests/src_app.py and lib/src-app.py", L),
    ("tests/unit/", "path", "ran tests/unit/test_a.py only", K),
    ("tests/unit/", "path", "ran tests/unittest/test_a.py only", L),
    ("My Notes/plan.md", "path", 'saved to "/data/My Notes/plan.md"', K),
    # identifiers
    ("retry_policy", "identifier", "calls `client.retry_policy(3)`", K),
    ("retry_policy", "identifier", "the option retry\\_policy is new", K),
    ("retry_policy", "identifier", "only retry_policy_v2 is left", L),
    ("RetryPolicy", "identifier", "constructed with relay::RetryPolicy::new", K),
    # references, errors, cron
    ("#412", "pr", "merged acme/relay#412", K),
    ("#412", "pr", "opened GH-412 for it", K),
    ("#412", "pr", "see #4120 and #1412", L),
    ("exit code 137", "error", "the worker exited with status 137", K),
    ("E0382", "error", "error[E0382]: use of moved value", K),
    ("HTTP 503", "error", "upstream answered 503 Service Unavailable", K),
    ("*/15 * * * *", "cron", "schedule: `*/15 * * * 1`", L),
    # markup and text
    ("deploy to staging first", None, "We **deploy** to _staging_ first.", K),
    ("Postgres", None, "\x1b[32mPostgres\x1b[0m is up", K),
    ("日本語", None, "ラベルは日本語にする", K),
)

SECOND: tuple[Case, ...] = (
    # numbers
    ("16", "number", "decoded as UTF-16LE", L),
    ("2", "number", "served over HTTP/2 from s3", L),
    ("8080", "number", "bound to 127.0.0.1:8080", K),
    ("127", "number", "bound to 127.0.0.1:8080", L),
    ("10", "number", "10.5 seconds on average", L),
    ("100", "number", "retries wait 50–100 ms", K),
    ("3", "number", "step 3/7 is done", L),
    ("15 minutes", None, "the cache lives 15 min", K),
    ("15 minutes", None, "the cache lives 15 hours", L),
    ("1500", "number", f"1{NN}500 EUR were refunded", K),
    ("1500", "number", "1'500 records, and 2'000 later", K),
    ("1500", "number", "`LIMIT = 1_500`", K),
    ("0", "number", "failed with code 0x0F", L),
    ("7", "number", "see line 17 and page 71", L),
    ("5 GB", None, "dumps are 15 GB", L),
    ("two workers", None, "the pool has 2 workers", K),
    ("$40", None, "the budget is 40 dollars", K),
    ("1e6", "number", "stops after 1000000 steps", K),
    # versions
    ("4.17.21", "version", 'package.json says "lodash": "^4.17.21"', K),
    ("4.17.21", "version", "lodash 4.17.2 is vulnerable", L),
    ("3.12", "version", "tested on 3.12.4", L),
    ("v2", "version", "calls /api/v2/jobs", K),
    ("1.0.0", "version", "pre-release 1.0.0rc2 was yanked", L),
    # hashes
    ("9f8e7d6c5b4a", "hash", "cherry-picked `9f8e7d6`", K),
    ("9f8e7d6", "hash", "range 9f8e7d6..1a2b3c4 was reviewed", K),
    ("9f8e7d6", "hash", "sha256:9f8e7d6aa01b", K),
    # paths
    ("docker/compose.yml", "path", "compose.yml was changed", L),
    ("compose.yml", "path", "docker/compose.yml was changed", K),
    ("compose.yml", "path", "docker-compose.yml was changed", L),
    ("compose.yml", "path", "a copy is compose.yml~ or compose.yml.orig", L),
    ("relay/api/routes.py", "path", "- `relay/api/`\n  - `routes.py`\n  - `auth.py`", L),
    ("relay/api/auth.py", "path", "relay/api/{routes,auth}.py both changed", K),
    ("~/.config/relay.toml", "path", "it reads /home/ci/.config/relay.toml", K),
    ("./run.sh", "path", "execute `run.sh` twice", K),
    ("migrations/", "path", "db/migrations/0007_add.sql is new", K),
    ("a.py", "path", "data.py and a.pyc were removed", L),
    # identifiers
    ("MAX_RETRIES", "identifier", "`export MAX_RETRIES=5`", K),
    ("MAX_RETRIES", "identifier", "$MAX_RETRIES or ${MAX_RETRIES:-3}", K),
    ("user_id", "identifier", "group by tenant_user_id", L),
    ("user_id", "identifier", '{\\"user_id\\": 7}', K),
    ("lease.acquire", "identifier", "we call lease.acquire(timeout=3) twice", K),
    # references, errors, urls
    ("#88", "pr", "https://github.com/acme/relay/issues/88", K),
    ("#88", "pr", "the colour is #88ff00", L),
    ("PR 88", "pr", "merge request !88 is open", K),
    ("ECONNRESET", "error", "Error: read ECONNRESET\n at TLSWrap", K),
    ("exit code 1", "error", "exit code 128 after the kill", L),
    ("api.relay.dev", "host", "curl https://api.relay.dev:8443/v1/health", K),
    ("https://relay.dev/docs", "url", "read [the docs](https://relay.dev/docs/)", K),
    # text
    ("not SQLite", None, "we do not use SQLite here", L),
    ("feature/retry-queue", None, "on branch `feature/retry-queue-v2`", L),
)

THIRD: tuple[Case, ...] = (
    # numbers
    ("86", "number", "built for x86_64 only", L),
    ("1024", "number", "a 1024-bit key was rejected", K),
    ("19", "number", "tracks COVID-19 and ISO-8859-19", L),
    ("443", "number", "ports 80, 443, and 8443 are open", K),
    ("43", "number", "ports 80, 443, and 8443 are open", L),
    ("17", "number", "17 of 20 checks passed", K),
    ("20", "number", "17/20 checks passed", L),
    ("2024", "number", "dated 2024-05-17T10:00:00Z", L),
    ("300 ms", None, "a timeout of 300 milliseconds", K),
    ("300 ms", None, "300 MB of swap", L),
    ("60 s", None, "| timeout | 60 s |", K),
    ("0.1", "number", "raised from 0.1 to 0.15", K),
    ("0.1", "number", "raised from 0.15 to 10.1", L),
    ("-1", "number", "returns \u22121 on failure", K),
    ("65%", None, "dropped to 65 % of baseline", K),
    ("12 tests", None, "twelve tests fail", K),
    ("4", "number", "IPv4 only, on h4ck and m4.large", L),
    ("10000", "number", "10k requests a day", L),
    # versions
    ("0.27.2", "version", "httpx==0.27.2 is locked", K),
    ("0.27.2", "version", "httpx==0.27.20 is locked", L),
    ("18", "version", "Node 18 and Postgres 16", K),
    ("1.22", "version", "go1.22 toolchain", K),
    ("5.0", "version", "uses 15.0 and 5.0.1", L),
    # hashes
    ("0a1b2c3d4e5f", "hash", "HEAD is now at 0a1b2c3d4 Fix lease", K),
    ("0a1b2c3d4e5f", "hash", "HEAD is now at 0a1b2c4d4 Fix lease", L),
    ("0a1b2c3", "hash", "0a1b2c3~1 was fine, 0a1b2c3^2 was not", K),
    # paths
    ("infra/main.tf", "path", "`infra/main.tf`, `infra/vars.tf`", K),
    ("infra/main.tf", "path", "infra/domain.tf differs", L),
    ("infra/main.tf", "path", "moved infra/main.tf → infra/prod/main.tf", K),
    ("infra/main.tf", "path", "a/infra/main.tf b/infra/main.tf", K),
    ("infra/main.tf", "path", "infra\\\\main.tf (from the JSON log)", K),
    ("logs/app.log", "path", "all of logs/*.log was rotated", L),
    ("config/.env", "path", "config/.env.example is committed", L),
    ("config/.env", "path", "never commit config/.env!", K),
    ("relay/queue", "path", "relay/queue.py is the module", L),
    ("test_lease.py", "path", "FAILED tests/test_lease.py::test_expiry - assert", K),
    # identifiers
    ("test_expiry", "identifier", "FAILED tests/test_lease.py::test_expiry[utc]", K),
    ("parseConfig", "identifier", "then parse_config runs", L),
    ("DATABASE_URL", "identifier", "DATABASE_URL_RO is set", L),
    ("on_conflict_do_nothing", "identifier", f"on_conflict_{SH}do_nothing is used", K),
    ("JobState.LEASED", "identifier", "**`JobState.LEASED`** → done", K),
    # references, errors, urls, mail
    ("#31", "pr", "Fixes #31, refs #32", K),
    ("#31", "pr", "bumped to rank 31 on PR-day", L),
    ("404", "error", "GET /jobs/7 returned a 404", K),
    ("0 3 * * *", "cron", "crontab: `0 3 * * * /usr/bin/backup`", K),
    ("https://relay.dev/api?page=2", "url", "GET https://relay.dev/api?page=20", L),
    ("ops@relay.dev", None, "mail devops@relay.dev about it", L),
    # text
    ("ship on Friday", None, "We ship&nbsp;on Friday &amp; tell sales", K),
    ("read-only mode", None, "the replica is in read only\nmode", K),
    ("重试三次", None, "失败后最多重试三次。", K),
)

FOURTH: tuple[Case, ...] = (
    # numbers in sentences of summaries
    ("1450", "number", "- Backfill: 1,450 of 9,000 rows copied so far", K),
    ("9000", "number", "- Backfill: 1,450 of 9,000 rows copied so far", K),
    ("450", "number", "- Backfill: 1,450 of 9,000 rows copied so far", L),
    ("24", "number", "MAX_CLIMB was set to 24 after the review", K),
    ("24", "number", "on May 24th the review ended at 24:00", K),
    ("18", "number", "es2018 target, iso-8601, layer18", L),
    ("6379", "number", "REDIS_URL=redis://cache:6379/0", K),
    ("0", "number", "REDIS_URL=redis://cache:6379/10", L),
    ("3.14", "number", "build 3.14.1 fixed it", L),
    ("70 s", None, "the import may hold the lock for 70 seconds", K),
    ("70 s", None, "the import may hold the lock for 70 sites", L),
    ("8 tests", None, "Eight tests fail on main", K),
    ("8 tests", None, "18 tests fail on main", L),
    ("2%", None, "error rate fell from 12% to 0.2%", L),
    ("1.75", "number", "the ratio was 1.750 before", K),
    ("31 of 40", None, "31 out of 40 members have none", K),
    ("21:00", None, "the window opens at 21:00 UTC", K),
    ("21:00", None, "the window opens at 1:21:00", L),
    ("2025-11-03", None, "Freeze until November 3, 2025", K),
    ("3 November", None, "Freeze until Nov 3rd", K),
    # versions
    ("0.9.4", "version", "CHANGELOG entry for 0.9.4 is missing", K),
    ("0.9.4", "version", "upgrade path 0.9.3 → 0.9.40", L),
    ("12.1", "version", "CUDA 12.1, driver 530", K),
    ("v1", None, "apiVersion: apps/v1", K),
    ("2.3.0", "version", "relay-2.3.0-py3-none-any.whl", K),
    # hashes
    ("c0ffee1", "hash", 'reverted in c0ffee1 ("Drop cache")', K),
    ("c0ffee1", "hash", "https://git.example/r/commit/c0ffee1d2b3a4f5e", K),
    ("c0ffee1", "hash", "c0ffee2 and c0ffe1", L),
    # paths
    ("deploy/values.yaml", "path", "Changed: deploy/values.yaml (+3/-1), README.md", K),
    ("deploy/values.yaml", "path", "Changed: deploy/values.yaml.tmpl", L),
    ("values.yaml", "path", "Changed: deploy/values-prod.yaml, prod-values.yaml", L),
    ("web/src/App.tsx", "path", "web\\src\\App.tsx(14,7): error TS2322", K),
    ("web/src/App.tsx", "path", "In web/src: App.tsx and index.tsx", L),
    ("scripts/", "path", "two scripts were deleted", L),
    ("conf/nginx.conf", "path", "conf/{nginx.conf,mime.types} are mounted", K),
    ("/var/lib/relay", "path", "volume relay-data:/var/lib/relay:ro", K),
    # identifiers
    ("claim_batch", "identifier", "Ledger.claim_batch() → returns rows", K),
    ("claim_batch", "identifier", "claim_batches() was renamed", L),
    ("LEDGER_READ", "identifier", "set `LEDGER_READ`=legacy to go back", K),
    ("on_event", "identifier", "| on_event | called once |", K),
    ("queue.Queue", "identifier", "a plain `queue.Queue` replaces it", K),
    # references and errors
    ("#57", "pr", "PR #56 and #57 wait for Finance", K),
    ("#57", "pr", "57 orders, build #570", L),
    ("E_SLOT_CLOSE", "error", "refused: E_SLOT_CLOSE (min gap)", K),
    ("exit code 2", "error", "pytest ended with exit status 2", K),
    ("HTTP 429", "error", "retried 429 times", L),
    # urls, hosts, cron, text
    ("docs.relay.example/guide", "url", "see https://docs.relay.example/guide#start", K),
    ("40 2 * * *", "cron", "their job reads it at `40 2 * * *` (02:40)", K),
    ("first match wins", None, "the rule is **first-match-wins**", K),
    ("do not push to main", None, "Constraint: don’t push to `main`.", K),
)

FIFTH: tuple[Case, ...] = (
    # numbers
    ("7", "number", "Seven of the workers were idle", K),
    ("7", "number", "the seventh worker was idle", L),
    ("40000", "number", "The limit was raised to 40'000 rows", K),
    ("2048", "number", "RSA-2048 keys, rsa2048.pem", L),
    ("1.2", "number", "1.2 million rows were read", K),
    ("120", "number", "took 1:20 min, 1.20 GB", L),
    ("95", "number", "p95=95ms", K),
    ("12 hours", None, "tokens live for twelve hours", K),
    ("12 hours", None, "tokens live for 12h", K),
    ("12 hours", None, "tokens live for 112 hours", L),
    ("€15", None, "it costs 15 euros a month", K),
    ("€15", None, "it costs $15 a month", L),
    ("4 of 9", None, "4/9 shards are done", K),
    ("4 of 9", None, "14/9 shards are done", L),
    ("3306", "number", "mysql -h db -P3306", L),
    ("64 MB", None, "shared_buffers = 64MB", K),
    ("2026-07-01", None, "valid from 1 July 2026", K),
    ("2026-07-01", None, "valid from 11 July 2026", L),
    ("08:00", None, "every day at 08:00–09:00", K),
    ("0.05", "number", "p < .05 in both arms", K),
    # versions
    ("1.27.0", "version", "nginx/1.27.0 (Ubuntu)", K),
    ("1.27.0", "version", "nginx:1.27.0-alpine", K),
    ("1.27.0", "version", "nginx 1.27", L),
    ("3.0.0-beta.2", "version", "tag v3.0.0-beta2", K),
    ("17", "version", "the image is eclipse-temurin with Java 17", K),
    # hashes
    ("5d41402abc4b", "hash", "merge base 5d41402abc4b2a76b9719d911017c592", K),
    ("5d41402abc4b", "hash", "commit 5d4140 was amended", L),
    # paths
    ("api/handlers/user.go", "path", "api/handlers/{user,team}.go now share a helper", K),
    ("api/handlers/user.go", "path", "api/handlers/user_test.go", L),
    ("api/handlers/user.go", "path", "rename api/{handlers => http}/user.go (98%)", K),
    ("user.go", "path", "| api/handlers/user.go | +12 −3 |", K),
    (".github/workflows/ci.yml", "path", "edited `.github/workflows/ci.yml` (matrix)", K),
    (".github/workflows/ci.yml", "path", "edited workflows/ci.yml", L),
    ("ci.yml", "path", "edited .github/workflows/ci.yml.disabled", L),
    ("build/", "path", "rm -rf build/", K),
    ("build/", "path", "the build was green", L),
    ("/etc/hosts", "path", '{"path":"\\/etc\\/hosts"}', K),
    # identifiers
    ("fetchUser", "identifier", "`fetchUser<T>()` is generic now", K),
    ("fetchUser", "identifier", "fetchUsers() and prefetchUser()", L),
    ("FEATURE_X", "identifier", "env: FEATURE_X: 'on'", K),
    ("config.retry.max", "identifier", "config.retry.max = 4", K),
    # references, errors
    ("#903", "pr", "acme/web!903 was approved", K),
    ("#903", "pr", "in PRs #901–#903", K),
    ("#903", "pr", "order no. 903 shipped", L),
    ("ENOSPC", "error", "write failed (ENOSPC)", K),
    ("HTTP 502", "error", "the proxy replied with 502 twice", K),
    ("exit code 139", "error", "139 checks ran", L),
    # text
    ("don't retry on 4xx", None, "Rule: do not retry on 4xx", K),
    ("blue/green deployment", None, "blue/green\n  deployment is planned", K),
    ("ask Mina first", None, "Mina asked first", L),
)
