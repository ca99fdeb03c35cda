-- Every stored answer with its question, screen and person, for exports.py.
SELECT a.id AS answer, a.person AS id, p.pseudonym AS person, q.id AS question, q.purpose, q.task,
       q.query AS head, q.shown AS posed, q.choose, q.repeats, q.expected, l.shown, a.choice,
       a.chosen, a.response_ms, a.elapsed_ms, a.received, l.issued, l.expires,
       a.person IN (SELECT person FROM excluded) AS excluded, coalesce(b.method, '') AS method,
       coalesce(i.panel, '') AS panel, coalesce(i.external, '') AS external,
       EXISTS (SELECT 1 FROM answers c WHERE c.supersedes = a.id) AS taken_back
FROM answers a JOIN questions q ON q.id = a.question JOIN leases l ON l.id = a.lease
JOIN people p ON p.id = a.person
LEFT JOIN batches b ON b.id = q.batch LEFT JOIN identities i ON i.person = a.person
ORDER BY a.id
