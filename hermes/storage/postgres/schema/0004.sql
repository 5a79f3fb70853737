-- The user of an agent-only machine locks no table: while one is locked, no machine can renew its lease. LOCK TABLE needs
-- a right to change the whole table; rights to change its columns are not enough. Such a user removes no records: the
-- phone side does that.
-- The members are not all that hold such rights: the user of a removed machine is no member any more, and keeps them
-- until an administrator drops it. 0003 has passed over it, too. So the rights themselves say who holds them.
DO $$
DECLARE
    holder name;
    agent name;
BEGIN
    FOR holder IN
        SELECT DISTINCT rolname
        FROM pg_class CROSS JOIN aclexplode(relacl) JOIN pg_roles ON pg_roles.oid = grantee
        WHERE pg_class.oid IN ('hermes.machines'::regclass, 'hermes.leases'::regclass, 'hermes.records'::regclass)
            AND NOT pg_has_role(grantee, relowner, 'MEMBER')
            AND NOT EXISTS (SELECT FROM hermes.members WHERE owner = rolname AND kind = 'phone')
    LOOP
        EXECUTE format('REVOKE INSERT, UPDATE ON hermes.machines, hermes.leases FROM %I', holder);
        EXECUTE format('REVOKE INSERT, DELETE ON hermes.records FROM %I', holder);
    END LOOP;
    -- A right to change a table that is taken takes the rights to change its columns along.
    FOR agent IN
        SELECT DISTINCT owner FROM hermes.members JOIN pg_roles ON rolname = owner WHERE kind = 'agent'
    LOOP
        EXECUTE format(
            'GRANT INSERT (bot, id, name, version), UPDATE (owner, name, version, servers, seen)
            ON hermes.machines TO %I', agent
        );
        EXECUTE format(
            'GRANT INSERT (bot, name, machine, holder, term, until), UPDATE (owner, machine, holder, term, until)
            ON hermes.leases TO %I', agent
        );
        EXECUTE format('GRANT INSERT (bot, kind, id, machine, owner, revision, body) ON hermes.records TO %I', agent);
    END LOOP;
END $$;
