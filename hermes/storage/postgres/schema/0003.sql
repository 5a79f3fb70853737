-- The user of an agent-only machine writes only rows of its own machines: a row of another one would be taken there as
-- the phone side's word. It sees no other machines, so these are its own. No machine has the id '', which marks the rows
-- of the phone side.
ALTER TABLE hermes.machines ADD CONSTRAINT machines_have_ids CHECK (id <> '');
DROP POLICY own ON hermes.entries;
CREATE POLICY own ON hermes.entries
    USING (owner = current_user AND bot IN (SELECT bot FROM hermes.members WHERE owner = current_user))
    WITH CHECK (
        owner = current_user
        AND EXISTS (SELECT FROM hermes.machines WHERE machines.bot = entries.bot AND machines.id = entries.machine)
    );
DROP POLICY own ON hermes.records;
CREATE POLICY own ON hermes.records
    USING (owner = current_user AND bot IN (SELECT bot FROM hermes.members WHERE owner = current_user))
    WITH CHECK (
        owner = current_user
        AND EXISTS (SELECT FROM hermes.machines WHERE machines.bot = records.bot AND machines.id = records.machine)
    );

-- It writes nothing of what decides where a person's words go: that is in the column `phone`, which is NULL in the rows
-- that are there now (there their body has it).
ALTER TABLE hermes.records ADD COLUMN phone json;
ALTER TABLE hermes.records ALTER COLUMN phone SET DEFAULT '{}';
DO $$
DECLARE
    agent name;
BEGIN
    FOR agent IN
        SELECT DISTINCT owner FROM hermes.members JOIN pg_roles ON rolname = owner WHERE kind = 'agent'
    LOOP
        EXECUTE format('REVOKE INSERT ON hermes.records FROM %I', agent);
        EXECUTE format('GRANT INSERT (bot, kind, id, machine, owner, revision, body) ON hermes.records TO %I', agent);
    END LOOP;
END $$;
