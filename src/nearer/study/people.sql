-- Everyone who joined, newest first, for exports.py.
SELECT p.id, p.pseudonym, p.joined, p.finished IS NOT NULL AS finished, p.excluded, p.withdrawn,
       coalesce(i.panel, '') AS panel, coalesce(i.external, '') AS external
FROM persons p LEFT JOIN identities i ON i.person = p.id ORDER BY p.id DESC
