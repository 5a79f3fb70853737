-- The user of an agent-only machine locks no table: while one is locked, no machine can renew its lease. LOCK TABLE needs
-- a right to change the whole table; rights to change its columns are not enough. Such a user removes no records: the
-- phone side does that.
DO $$
DECLARE
    agent name;
BEGIN
    FOR agent IN
        SELECT DISTINCT owner FROM hermes.members JOIN pg_roles ON rolname = owner WHERE kind = 'agent'
    LOOP
        EXECUTE format('REVOKE INSERT, UPDATE ON hermes.machines, hermes.leases FROM %I', agent);
        EXECUTE format('REVOKE DELETE ON hermes.records FROM %I', agent);
        EXECUTE format(
            'GRANT INSERT (bot, id, name, version), UPDATE (owner, name, version, servers, seen)
            ON hermes.machines TO %I', agent
        );
        EXECUTE format(
            'GRANT INSERT (bot, name, machine, holder, term, until), UPDATE (owner, machine, holder, term, until)
            ON hermes.leases TO %I', agent
        );
    END LOOP;
END $$;
