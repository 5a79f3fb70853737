-- Bodies are `json`, not `jsonb`: it keeps \ud800 and \u0000 as they were written, and jsonb refuses both.
-- `owner` is the database user of the machine that a row belongs to; agent-only users see and change only their own.
CREATE SCHEMA hermes;

CREATE TABLE hermes.migrations (
    version integer PRIMARY KEY,
    made timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE hermes.members (
    owner name NOT NULL,
    bot bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('phone', 'agent')),
    PRIMARY KEY (owner, bot)
);

CREATE TABLE hermes.machines (
    bot bigint NOT NULL,
    id text NOT NULL,
    owner name NOT NULL DEFAULT current_user,
    name text NOT NULL,
    version text NOT NULL,
    servers json NOT NULL DEFAULT '[]',
    seen timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (bot, id)
);

CREATE TABLE hermes.leases (
    bot bigint NOT NULL,
    name text NOT NULL,
    owner name NOT NULL DEFAULT current_user,
    machine text NOT NULL,
    holder text NOT NULL,
    term bigint NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (bot, name)
);

CREATE TABLE hermes.entries (
    bot bigint NOT NULL,
    id text NOT NULL,
    machine text NOT NULL,
    owner name NOT NULL DEFAULT current_user,
    agent text NOT NULL,
    wait_id text NOT NULL,
    code text NOT NULL,
    phase text NOT NULL,
    revision bigint NOT NULL,
    asked_s double precision NOT NULL,
    closed_s double precision,
    body json NOT NULL,
    phone json NOT NULL DEFAULT '{"chat_id":0}',
    PRIMARY KEY (bot, id)
);
CREATE UNIQUE INDEX entries_code ON hermes.entries (bot, code) WHERE code <> '';
CREATE INDEX entries_open ON hermes.entries (bot, machine) WHERE closed_s IS NULL;
CREATE INDEX entries_closed ON hermes.entries (bot, closed_s) WHERE closed_s IS NOT NULL;
CREATE INDEX entries_wait ON hermes.entries (bot, wait_id) WHERE closed_s IS NOT NULL;

CREATE TABLE hermes.records (
    bot bigint NOT NULL,
    kind text NOT NULL,
    id text NOT NULL,
    machine text NOT NULL,
    owner name NOT NULL DEFAULT current_user,
    revision bigint NOT NULL,
    body json NOT NULL,
    PRIMARY KEY (bot, kind, id)
);

CREATE TABLE hermes.chats (
    bot bigint PRIMARY KEY,
    body json NOT NULL
);

CREATE TABLE hermes.locks (
    bot bigint PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);

ALTER TABLE hermes.members ENABLE ROW LEVEL SECURITY;
ALTER TABLE hermes.machines ENABLE ROW LEVEL SECURITY;
ALTER TABLE hermes.leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE hermes.entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE hermes.records ENABLE ROW LEVEL SECURITY;
ALTER TABLE hermes.chats ENABLE ROW LEVEL SECURITY;
ALTER TABLE hermes.locks ENABLE ROW LEVEL SECURITY;

CREATE POLICY own ON hermes.members USING (owner = current_user);
CREATE POLICY own ON hermes.machines
    USING (owner = current_user AND bot IN (SELECT bot FROM hermes.members WHERE owner = current_user));
CREATE POLICY own ON hermes.leases
    USING (
        owner = current_user AND name <> 'phone'
        AND bot IN (SELECT bot FROM hermes.members WHERE owner = current_user)
    );
CREATE POLICY own ON hermes.entries
    USING (owner = current_user AND bot IN (SELECT bot FROM hermes.members WHERE owner = current_user));
CREATE POLICY own ON hermes.records
    USING (owner = current_user AND bot IN (SELECT bot FROM hermes.members WHERE owner = current_user));
CREATE POLICY own ON hermes.locks FOR SELECT
    USING (bot IN (SELECT bot FROM hermes.members WHERE owner = current_user));
