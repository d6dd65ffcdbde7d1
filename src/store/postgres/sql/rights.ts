/** Which rights the role lacks on the tables that every request writes. One row for each table: its name and the rights. */
export const findMissingRights = (schema: string) => `
SELECT n.name, string_agg(n.right_needed, ', ' ORDER BY n.place)
FROM (VALUES
    (1, 'records', 'SELECT'), (2, 'records', 'INSERT'), (3, 'records', 'UPDATE'),
    (4, 'attempts', 'SELECT'), (5, 'attempts', 'INSERT'),
    (6, 'key_ids', 'SELECT'), (7, 'key_ids', 'INSERT'), (8, 'key_ids', 'UPDATE')
  ) AS n (place, name, right_needed)
WHERE NOT has_table_privilege('${schema}.' || n.name, n.right_needed)
GROUP BY n.name ORDER BY min(n.place)`
