-- The tokens of accounts. An account is looked up by who may use it, so there is no way to somebody else's.
CREATE TABLE connections (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    id TEXT NOT NULL,
    -- Sealed tokens; NULL once the connection is revoked.
    sealed BLOB,
    PRIMARY KEY (tenant, principal, id)
) STRICT;
