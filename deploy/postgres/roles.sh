#!/usr/bin/env bash
# Makes the role of the service, which may read and write rows and nothing else. Its rights are given by `migrate --grant payments_service`.
set -euo pipefail
psql -v ON_ERROR_STOP=1 -v password="$SERVICE_PASSWORD" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE payments_service LOGIN PASSWORD :'password';
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE payments TO payments_service;
SQL
