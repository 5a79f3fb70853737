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
