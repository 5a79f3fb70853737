-- The files of prompts, in pieces. A file belongs to the row of its prompt: it is seen and removed with it.
-- `size` is that of the whole file.
CREATE TABLE hermes.files (
    bot bigint NOT NULL,
    kind text NOT NULL DEFAULT 'prompts' CHECK (kind = 'prompts'),
    prompt text NOT NULL,
    message bigint NOT NULL,
    piece integer NOT NULL,
    size bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (bot, prompt, message, piece),
    FOREIGN KEY (bot, kind, prompt) REFERENCES hermes.records (bot, kind, id) ON DELETE CASCADE
);

ALTER TABLE hermes.files ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON hermes.files FOR SELECT
    USING (
        EXISTS (SELECT FROM hermes.records
                WHERE records.bot = files.bot AND records.kind = files.kind AND records.id = files.prompt)
    );

-- The user that brings the tables forward need not be the one that has made the others.
-- The users of agent-only machines that were made before may read their files, too.
DO $$
DECLARE
    agent name;
BEGIN
    EXECUTE format(
        'ALTER TABLE hermes.files OWNER TO %s', (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'hermes')
    );
    FOR agent IN
        SELECT DISTINCT owner FROM hermes.members JOIN pg_roles ON rolname = owner WHERE kind = 'agent'
    LOOP
        EXECUTE format('GRANT SELECT ON hermes.files TO %I', agent);
    END LOOP;
END $$;
