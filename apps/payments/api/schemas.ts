import { Type } from 'typebox'

/** What schemas of several routes share. */
export const Timestamp = Type.String({ format: 'date-time' })
export const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()])

/** The parameters of a path with one id in it. Whether there is such a thing is asked, and not checked here. */
export const IdParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 100 }) })

export const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri' }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String({ description: 'Stable for ever: match on this.' }),
    detail: Type.Optional(Type.String()),
    field: Type.Optional(Type.String({ description: 'The member or parameter that is wrong.' })),
    retryable: Type.Boolean({ description: 'Whether the same request with the same key may be sent again.' }),
    executed: Type.Optional(
      Type.Union(
        [
          Type.Literal('no'),
          Type.Literal('not_by_this_request'),
          Type.Literal('unknown'),
          Type.Literal('yes'),
        ],
        {
          description:
            'What is known about the key: nothing took effect under it; this request changed nothing, and an earlier one with this key may have taken effect; it may have taken effect; it has.',
        },
      ),
    ),
    request_id: Type.Optional(Type.String()),
  },
  { description: 'A refusal, as in RFC 9457.' },
)
